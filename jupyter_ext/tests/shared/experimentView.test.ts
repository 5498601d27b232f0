// @vitest-environment jsdom
import { buttonOf, nameOf, observing, textsOf } from './browserParts';
import { describe, expect, it, vi } from 'vitest';

import type { ExperimentView } from '../../src/shared/model';
import { ENDED_EVENT, KNOWN_EVENT } from '../../src/shared/experimentView';
import { TEXTS } from '../../src/shared/texts';
import { emptyView } from '../../src/shared/view';
import {
  checkpoint,
  curve,
  detail,
  HOSTILE,
  logLine,
  MANY,
  NASTY,
  trial,
  userError
} from './examples';
import { frame, shown } from './shownView';

describe('the view of an experiment', () => {
  it('says what it waits for before anything is known, and offers nothing', () => {
    const { text, buttons, root } = shown(emptyView(7));
    expect(root.getAttribute('aria-label')).toBe('Experiment 7');
    expect(text('.det-title')).toBe('Experiment 7');
    expect(text('.det-facts')).toBe(TEXTS.loading);
    expect(text('.det-notice > span')).toBe('Connecting…');
    expect(buttons()).toEqual([]);
  });

  it('has title, name, state, progress, time left and the best metric', () => {
    const { text, root } = shown();
    expect(text('.det-name')).toBe('digits');
    expect(root.querySelector<HTMLElement>('.det-name')?.title).toBe('digits');
    expect(text('.det-badge')).toBe('Running');
    expect(text('.det-facts')).toBe(
      '45 % · about 2 min left · batch 40 of 100 · units=32 · best val_accuracy 0.9871'
    );
    const bar = root.querySelector('[role=progressbar]');
    expect(bar?.getAttribute('aria-valuenow')).toBe('45');
    expect(bar?.getAttribute('aria-label')).toBe('Progress');
  });

  it('of a search says how many trials are done, and which is the best', () => {
    const config = { searcher: { name: 'random' } };
    const { text } = shown({
      experiment: detail({
        config,
        trials: 5,
        seconds_left: null,
        best_validation: 0.9
      }),
      trials: [
        trial(),
        trial({ id: 4, state: 'COMPLETED', best_validation: 0.5 })
      ]
    });
    expect(text('.det-facts')).toBe(
      '45 % · random search, 1 of 5 trials done · best val_accuracy 0.9 (trial 3)'
    );
    expect(text('tr.det-emphasised td:first-child')).toBe('3');
  });

  it('of a stopped search does not call what was stopped done', () => {
    const trials = [
      trial({ state: 'CANCELED' }),
      trial({ id: 4, state: 'COMPLETED' }),
      trial({ id: 5, state: 'ERROR' })
    ];
    const { text } = shown({
      experiment: detail({ state: 'CANCELED', trials: 3 }),
      trials
    });
    expect(text('.det-facts')).toContain(
      '2 of 3 trials done, 1 failed, 1 stopped'
    );
  });

  it('calls the trials of a paused experiment paused', () => {
    const trials = [trial({ state: 'QUEUED' }), trial({ id: 4 })];
    const { text } = shown({
      experiment: detail({ state: 'PAUSED', trials: 2 }),
      trials
    });
    expect(text('tbody tr td:nth-child(2)')).toBe('Paused|Running');
  });

  it('of one trial has its number, its state and its own buttons', () => {
    const { text, buttons } = shown({
      trialId: 3,
      trials: [trial({ state: 'QUEUED' })]
    });
    expect([text('.det-title'), text('.det-name')]).toEqual([
      'Trial 3',
      'of experiment 7'
    ]);
    expect(text('.det-badge')).toBe('Queued');
    expect(buttons().map(nameOf)).toContain('Stop experiment');
  });

  it('that has ended says how long it took, and that it was a test', () => {
    const { text } = shown({
      experiment: detail({
        state: 'COMPLETED',
        test: true,
        ended: '2026-11-20T11:56:05Z',
        best_validation: null
      })
    });
    expect(text('.det-facts')).toBe(
      'batch 40 of 100 · units=32 · took 5:05 · test run: one short loop only'
    );
  });

  it.each([
    ['connecting', 'Connecting…'],
    ['live', ''],
    ['resting', ''],
    ['ended', '']
  ] as const)('says while it is %s and empty: %j', (kind, words) => {
    const { text } = shown({ ...emptyView(7), connection: { kind } });
    expect(text('.det-notice > span')).toBe(words);
  });

  it('tells once that it has ended, to what it stands in', async () => {
    const told = vi.fn();
    document.body.addEventListener(ENDED_EVENT, told);
    const { show } = shown();
    expect(told).not.toHaveBeenCalled();
    for (const progress of [0.9, 1]) {
      await show({ experiment: detail({ state: 'COMPLETED', progress }) });
    }
    expect(told).toHaveBeenCalledOnce();
    document.body.removeEventListener(ENDED_EVENT, told);
  });

  it('tells once that it knows more than its title', async () => {
    const told: boolean[] = [];
    const note = () => told.push(root.hasAttribute('data-known'));
    document.body.addEventListener(KNOWN_EVENT, note);
    const { root, show } = shown(emptyView(7));
    await show({ connection: { kind: 'live' } });
    expect(told).toEqual([]);
    await show({ experiment: detail() });
    await show({ experiment: detail({ progress: 0.9 }) });
    expect(told).toEqual([true]);
    document.body.removeEventListener(KNOWN_EVENT, note);
  });

  it('of a trial tells the end of the trial', async () => {
    const told = vi.fn();
    document.body.addEventListener(ENDED_EVENT, told);
    const { show } = shown({ trialId: 3, trials: [trial({ id: 3 })] });
    expect(told).not.toHaveBeenCalled();
    await show({ trials: [trial({ id: 3, state: 'COMPLETED' })] });
    expect(told).toHaveBeenCalledOnce();
    document.body.removeEventListener(ENDED_EVENT, told);
  });

  it('says that not the curves of all trials are drawn', async () => {
    const trials = Array.from({ length: 120 }, (_, id) => trial({ id }));
    const curves = trials.slice(70).map(({ id }) => curve({ trial_id: id }));
    const { text, show } = shown({ trials, curves });
    const note = 'Curves of 50 of 120 trials: the best and the newest.';
    expect(text('.det-charts > p')).toBe(note);
    // Those that have no metrics yet have no curve for another reason.
    await show({ trials: trials.slice(70), curves: curves.slice(1) });
    expect(text('.det-charts > p')).toBe('');
  });

  it('is drawn once a frame however much happens', async () => {
    const { source, text } = shown();
    for (let batches = 41; batches <= 60; batches++) {
      source.show({ trials: [trial({ batches })] });
    }
    expect(text('.det-facts')).toContain('batch 40 of 100');
    await frame();
    expect(text('.det-facts')).toContain('batch 60 of 100');
  });

  it('leaves nothing when it is disposed', async () => {
    const { element, source } = shown({ curves: [curve()] });
    await frame();
    source.show({ trials: [] });
    element.dispose();
    expect(source.listeners).toBe(0);
    expect(observing.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    expect(document.body.childElementCount).toBe(0);
  });
});

describe('what comes from outside', () => {
  const everywhere = (name: string): Partial<ExperimentView> => ({
    experiment: detail({
      name,
      metric: name,
      config: { searcher: { name } },
      trials: 2,
      error: userError({
        message: name,
        traceback: name + name,
        file: name,
        cell: null
      })
    }),
    trials: [
      trial({ hparams: { [name]: name } }),
      trial({
        id: 4,
        state: 'ERROR',
        error: userError({ traceback: name, file: name })
      })
    ],
    checkpoints: [checkpoint({ uuid: name, metrics: { [name]: name } })],
    curves: [
      curve({ name }),
      curve({ name: `val_${name}`, kind: 'validation' })
    ],
    logs: [logLine(name)]
  });

  it('is text wherever it stands, never markup', async () => {
    const { root, text } = shown(everywhere(NASTY), {
      page: true,
      onLoad: () => undefined
    });
    await frame();
    expect(root.querySelector('img, script, [onerror]')).toBeNull();
    expect(text('.det-name')).toBe(NASTY);
    expect(text('pre.det-log')).toBe(`${NASTY}\n`);
    expect(text('.det-chart-title > span')).toBe(NASTY);
    expect(text('pre.det-traceback')).toBe(`${NASTY}|${NASTY}${NASTY}`);
    expect(text('.det-facts')).toContain(NASTY);
    expect(text('td')).toContain(NASTY.slice(0, 8));
    expect(
      root.querySelector('[aria-label=Trials] td[title]')?.getAttribute('title')
    ).toBe('');
  });

  it.each(HOSTILE)('is no element, address or listener: %.40s', async name => {
    const { root } = shown(everywhere(name), {
      page: true,
      onLoad: () => undefined
    });
    await frame();
    expect(root.querySelector('script, img, iframe, object, embed')).toBeNull();
    const attributes = [...root.querySelectorAll('*')].flatMap(element => [
      ...element.attributes
    ]);
    expect(attributes.filter(({ name }) => name.startsWith('on'))).toEqual([]);
    const leads = ['href', 'src', 'srcdoc', 'action', 'xlink:href'];
    expect(attributes.filter(({ name }) => leads.includes(name))).toEqual([]);
    expect(root.textContent).toContain(name.slice(0, 12));
  });
});

describe('keyboard and screen reader', () => {
  it('know every part by a name, and can scroll what is cut', () => {
    const { root } = shown(
      { ...MANY, curves: [curve()] },
      { page: true, onLoad: () => undefined }
    );
    const named =
      'button, [role=progressbar], [role=region], [role=group], table, section, pre';
    const nameless = [...root.querySelectorAll(named)].filter(
      each => !each.closest('[hidden]') && nameOf(each) === ''
    );
    expect(nameless.map(each => each.className)).toEqual([]);
    const regions = [
      ...root.querySelectorAll<HTMLElement>('[role=region], pre')
    ];
    expect(regions.length).toBeGreaterThan(2);
    expect(regions.every(each => each.tabIndex === 0)).toBe(true);
    const heads = [...root.querySelectorAll('th')];
    expect(heads.every(each => nameOf(each) !== '')).toBe(true);
  });

  it('are told what the log and a traceback are, and of new lines nothing', () => {
    const error = userError();
    const { root } = shown({
      trials: [trial({ state: 'ERROR', error })],
      logs: [logLine('one')]
    });
    const attributes = (selector: string, ...names: string[]) =>
      names.map(name => root.querySelector(selector)?.getAttribute(name));
    expect(
      attributes('.det-log', 'role', 'aria-label', 'aria-live', 'tabindex')
    ).toEqual(['log', 'Log lines', 'off', '0']);
    expect(attributes('.det-traceback', 'role', 'aria-label')).toEqual([
      'region',
      'Traceback: Trial 3 failed before its first batch, in cell [5], line 3'
    ]);
  });

  it('keep the focus on a row while the rows around it change', async () => {
    const onLoad = vi.fn();
    const { root, show } = shown(
      { checkpoints: [checkpoint()] },
      { page: true, onLoad }
    );
    const button = buttonOf(root, 'Load checkpoint 01234567 into notebook');
    button.focus();
    const newer = checkpoint({
      uuid: 'newer-123',
      created: '2026-11-20T11:59:00Z'
    });
    await show({ checkpoints: [checkpoint(), newer] });
    expect(document.activeElement).toBe(button);
    expect(
      textsOf(root, '[aria-label=Checkpoints] tbody td:first-child')
    ).toEqual(['newer-12', '01234567']);
    await show({ checkpoints: [newer] });
    expect(textsOf(root, '[aria-label=Checkpoints] tbody tr')).toHaveLength(1);
  });

  it('are told a state that changes, and not one that does not', async () => {
    const { root, show } = shown();
    const badge = root.querySelector('.det-badge')!;
    expect(badge.getAttribute('role')).toBe('status');
    const changes = vi.fn();
    const observer = new MutationObserver(changes);
    observer.observe(badge, {
      childList: true,
      characterData: true,
      subtree: true
    });
    await show({ experiment: detail({ progress: 0.5 }) });
    expect(changes).not.toHaveBeenCalled();
    await show({ experiment: detail({ state: 'PAUSED' }) });
    expect(changes).toHaveBeenCalledTimes(1);
    observer.disconnect();
  });
});

// @vitest-environment jsdom
import { buttonOf } from './browserParts';
import { describe, expect, it, vi } from 'vitest';

import { TEXTS } from '../../src/shared/texts';
import {
  checkpoint,
  curve,
  detail,
  flatCurve,
  logLine,
  MANY,
  trial,
  userError
} from './examples';
import { frame, shown } from './shownView';

describe('the parts', () => {
  it('have words where there is nothing, others at the end', async () => {
    const { text, show } = shown({
      trials: [],
      experiment: detail({ best_validation: null })
    });
    expect(text('.det-empty').split('|')).toEqual([
      TEXTS.noMetrics,
      TEXTS.noTrials,
      TEXTS.noCheckpoints,
      TEXTS.noLogs
    ]);
    const completed = { state: 'COMPLETED', best_validation: null } as const;
    await show({ experiment: detail(completed) });
    expect(text('.det-empty').split('|')).toEqual([
      TEXTS.noMetricsEnded,
      TEXTS.noTrials,
      TEXTS.noCheckpointsEnded,
      TEXTS.noLogsEnded
    ]);
  });

  it('do not say that there are no metrics where a best value is known', async () => {
    const { text, show } = shown({ trials: [] });
    const empty = () => text('.det-charts .det-empty');
    expect(empty()).toBe(TEXTS.noCurves);
    await show({ experiment: detail({ state: 'COMPLETED' }) });
    expect(empty()).toBe(TEXTS.noCurvesEnded);
    await show({
      experiment: detail({ best_validation: null }),
      trials: [trial({ best_validation: 0.5 })]
    });
    expect(empty()).toBe(TEXTS.noCurves);
  });

  it('say on which GPUs a trial runs, where they are known', () => {
    const h100 = 'NVIDIA H100 (80.0 GB)';
    const { text, root } = shown({
      experiment: detail({
        trials: 2,
        devices: { 'cuda:0': h100, 'cuda:1': h100 }
      }),
      trials: [
        trial({ slots: ['cuda:0', 'cuda:1'] }),
        trial({ id: 4, slots: ['cuda:0'] }),
        trial({ id: 5, slots: [] })
      ]
    });
    expect(root).toBeDefined();
    const cells = text('[aria-label=Trials] tbody td').split('|');
    expect(cells.filter((_, index) => index % 5 === 1)).toEqual([
      `Running, on 2 slots: ${h100}`,
      `Running, on ${h100}`,
      'Running'
    ]);
  });

  it('list trials with state, batches, restarts and hyperparameters', () => {
    const { text } = shown({
      trials: [
        trial({ restarts: 1, slots: ['cpu:0', 'cpu:1'] }),
        trial({ id: 4, hparams: {}, restarts: 2 })
      ]
    });
    expect(text('summary').split('|')[1]).toBe('Trials (2)');
    const cells = text('[aria-label=Trials] tbody td').split('|');
    expect(cells.slice(0, 5)).toEqual([
      '3',
      'Running, on 2 slots, 1 restart',
      '40 / 100',
      '0.9',
      'units=32'
    ]);
    expect(cells.slice(6)).toEqual([
      'Running, 2 restarts',
      '40 / 100',
      '0.9',
      '—'
    ]);
  });

  it('list the hyperparameters that differ, and say once those that are the same', async () => {
    const constants = { batch: 32, depth: 2 };
    const hparams = (rate: number) => ({ ...constants, optimizer: { rate } });
    const [first, second] = [
      trial({ hparams: hparams(0.1) }),
      trial({ id: 4, hparams: hparams(0.2) })
    ];
    const { root, text, show } = shown({
      trials: [first],
      experiment: detail({ trials: 2 })
    });
    const cells = () => text('[aria-label=Trials] td:last-child').split('|');
    expect([cells(), text('.det-common')]).toEqual([
      ['batch=32, depth=2, optimizer.rate=0.1'],
      ''
    ]);
    await show({ trials: [first, second] });
    expect(cells()).toEqual(['optimizer.rate=0.1', 'optimizer.rate=0.2']);
    expect(text('.det-common')).toBe('In all trials: batch=32, depth=2');
    expect(root.querySelector<HTMLElement>('td:last-child')!.title).toBe(
      'optimizer.rate=0.1'
    );
    await show({ trials: [first, { ...first, id: 4 }] });
    expect(cells()).toEqual(['—', '—']);
  });

  it('leave out the table of a single trial', () => {
    const { text } = shown({ experiment: detail({ trials: 1 }) });
    expect(text('summary')).not.toContain('Trials');
  });

  it('list the checkpoints that are there, newest first, and load one by a named button', () => {
    const onLoad = vi.fn();
    const old = checkpoint({
      uuid: 'old-12345',
      created: '2026-11-20T11:00:00Z',
      metrics: {}
    });
    const gone = checkpoint({ uuid: 'gone', state: 'DELETED' });
    const { root, text } = shown(
      { checkpoints: [old, gone, checkpoint()] },
      { onLoad, page: true }
    );
    expect(text('summary')).toContain('Checkpoints (2)');
    const rows = [
      ...root.querySelectorAll('[aria-label=Checkpoints] tbody tr')
    ];
    expect(
      rows.map(row =>
        [...row.children].slice(0, 5).map(cell => cell.textContent)
      )
    ).toEqual([
      ['01234567', '3', '40', 'val_accuracy 0.9 (best)', '1.25 MB'],
      ['old-1234', '3', '40', '—', '1.25 MB']
    ]);
    buttonOf(root, 'Load checkpoint old-1234 into notebook').click();
    expect(onLoad.mock.calls).toEqual([[old]]);
  });

  it('call nothing a validation where there is none', async () => {
    const { text, show } = shown({ checkpoints: [checkpoint()] });
    const titles = () => text('[aria-label=Checkpoints] th');
    expect(titles()).toContain('Validation');
    await show({
      checkpoints: [checkpoint()],
      experiment: detail({ validates: false })
    });
    expect(titles()).toContain('Metric');
    expect(titles()).not.toContain('Validation');
  });

  it('mark of equal checkpoints the one that top_checkpoint() loads, in whatever order they are listed', async () => {
    const each = (uuid: string, trial_id: number, minute: number) =>
      checkpoint({
        uuid,
        trial_id,
        created: `2026-11-20T11:${minute}:00Z`,
        metrics: { val_accuracy: 0.9 }
      });
    const checkpoints = [each('aaa', 3, 10), each('bbb', 4, 20)];
    const trials = [trial({ id: 3 }), trial({ id: 4 })];
    const { text, show } = shown({ checkpoints, trials });
    const best = () => text('tr.det-emphasised td:first-child');
    expect(best()).toBe('3|aaa');
    expect(text('[aria-label=Checkpoints] td:first-child')).toBe('bbb|aaa');
    expect(checkpoints.map(({ uuid }) => uuid)).toEqual(['aaa', 'bbb']);
    await show({ checkpoints: [...checkpoints, each('ccc', 3, 30)] });
    expect(best()).toBe('3|aaa');
  });

  it('offer no loading where there is no notebook to load into', () => {
    const { root } = shown({ checkpoints: [checkpoint()] });
    expect(
      root.querySelector('[aria-label=Checkpoints] tbody button')
    ).toBeNull();
  });

  it('show the last lines of the log, of the trial that it is of', async () => {
    const ranked = { ...logLine('two', 2), rank: 1 };
    const { text, show } = shown({ logs: [logLine('one'), ranked] });
    expect(text('pre.det-log')).toBe('one\n[rank 1] two\n');
    expect(text('summary')).toContain('Log, last lines');
    await show({ ...MANY, logs: [logLine('three', 3)] });
    expect(text('pre.det-log')).toBe('three\n');
    expect(text('summary')).toContain('Log of trial 3, last lines');
  });

  it('tell failures with their traceback, and do not tell the same ones again', async () => {
    const failed = {
      trials: [trial({ state: 'ERROR', error: userError({ batch: 3 }) })]
    } as const;
    const { root, text, show } = shown(failed);
    expect(text('[role=alert] b')).toBe(
      'Trial 3 failed at batch 3, in cell [5], line 3: ValueError: bad shape'
    );
    expect(text('pre.det-traceback')).toBe(userError().traceback);
    const before = root.querySelector('.det-failure');
    await show({ trials: [...failed.trials] });
    expect(root.querySelector('.det-failure')).toBe(before);
    await show({ trials: [trial()] });
    expect(root.querySelector('.det-failure')).toBeNull();
  });

  it('have a chart for each metric; those after six on demand', async () => {
    const curves = Array.from({ length: 8 }, (_, index) =>
      curve({ name: `metric ${index}` })
    );
    const { root, text, show } = shown({ curves });
    await frame();
    expect(text('.det-empty')).not.toContain(TEXTS.noMetrics);
    expect(root.querySelectorAll('figure')).toHaveLength(6);
    buttonOf(root, 'Show 2 more metrics').click();
    await frame();
    expect(text('.det-chart-title > span').split('|')).toEqual(
      curves.map(({ name }) => name)
    );
    await show({ curves: curves.slice(7) });
    expect(text('.det-chart-title > span')).toBe('metric 7');
    expect(() => buttonOf(root, 'Show 2 more metrics')).toThrow();
  });

  it("keep a chart while its curve grows, and put the searcher's metric first", async () => {
    const loss = curve();
    const accuracy = curve({ name: 'val_accuracy', kind: 'validation' });
    const { root, text, show } = shown({ curves: [loss] });
    await frame();
    const [before] = root.querySelectorAll('figure');
    await show({
      curves: [flatCurve([10, 20, 30, 40], [4, 3, 2, 1]), accuracy]
    });
    expect(text('.det-chart-title > span')).toBe('val_accuracy|loss');
    expect(root.querySelectorAll('figure')[1]).toBe(before);
  });
});

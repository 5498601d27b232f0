// @vitest-environment jsdom
import { buttonOf, textsOf } from '../shared/browserParts';
import { afterEach, describe, expect, it } from 'vitest';

import {
  type DialogEvent,
  type DialogModel,
  next,
  opened
} from '../../src/lab/submission/dialogModel';
import { DialogView } from '../../src/lab/submission/dialogView';
import type { Inspection } from '../../src/lab/submission/inspection';
import { NASTY } from '../shared/examples';
import { inspection } from './facts';

const views: Array<{ dispose(): void }> = [];

afterEach(() => {
  views.splice(0).forEach(view => view.dispose());
  document.body.replaceChildren();
});

function shown(...events: DialogEvent[]) {
  const sent: DialogEvent[] = [];
  const view = new DialogView(event => sent.push(event));
  views.push(view);
  document.body.append(view.node);
  const show = (model: DialogModel) => {
    view.showModel(model);
    return model;
  };
  const model = show(events.reduce(next, opened()));
  const { node } = view;
  const input = (selector: string) =>
    node.querySelector<HTMLInputElement>(`input${selector}`)!;
  return {
    node,
    sent,
    show,
    model,
    input,
    texts: (where: string) => textsOf(node, where)
  };
}

const inspected = (change: Partial<Inspection> = {}): DialogEvent => ({
  type: 'inspected',
  inspection: inspection(change)
});

describe('the dialog', () => {
  it('says what it waits for, to a screen reader too; its form waits', () => {
    const { node, texts } = shown();
    expect(texts('[role=status]')[0]).toContain('Reading the notebook');
    const fields = [...node.querySelectorAll('input, select')];
    expect(fields.every(field => field.matches(':disabled'))).toBe(true);
    expect(
      node.querySelector('.det-Submit-status')?.getAttribute('aria-live')
    ).toBe('polite');
  });

  it('keeps its parts in their places while the notebook is read again', () => {
    const problems = [{ where: 'cell 1', what: 'holds a secret', remedy: '' }];
    const { node, texts, show, model } = shown(inspected({ problems }));
    const parts = [...node.children];
    const line = node.querySelector('.det-Submit-line')!;
    expect(line.textContent).toContain('Runs 2 cells');
    const content = node.querySelector('.det-Submit-content')!;
    node.scrollTop = 30;
    const again = show(next(model, { type: 'reread' }));
    expect(line.textContent).toContain('Reading the notebook');
    expect([...node.children]).toEqual(parts);
    expect(texts('.det-Submit-problems li')).toEqual(['cell 1 holds a secret']);
    expect(content.textContent).toContain('Submits fit()');
    show(next(again, inspected()));
    expect(line.textContent).toContain('Runs 2 cells');
    expect(texts('.det-Submit-problems li')).toEqual([]);
    expect([node.querySelector('.det-Submit-line'), node.scrollTop]).toEqual([
      line,
      30
    ]);
  });

  it('says in a line what is sent, folds the rest, and keeps it unfolded', () => {
    const { node, show, model } = shown(inspected());
    const details = () => node.querySelector('details')!;
    expect(details().open).toBe(false);
    expect(details().textContent).toContain('Submits fit() of Keras');
    details().open = true;
    details().dispatchEvent(new Event('toggle'));
    show(next(next(model, { type: 'reread' }), inspected()));
    expect(details().open).toBe(true);
  });

  it('shows code as code, without backticks', () => {
    const what = '`api_key` holds a secret';
    const { node } = shown(
      inspected({ problems: [{ where: 'cell 1', what, remedy: '' }] })
    );
    const problem = node.querySelector('.det-Submit-problems li')!;
    expect(problem.textContent).toBe('cell 1 api_key holds a secret');
    expect(problem.querySelector('code')?.textContent).toBe('api_key');
  });

  it('says what is refused with its remedy, and tries again on demand', () => {
    const problems = [
      { where: 'cell 3', what: 'uses a lock', remedy: 'Make it there.' },
      { where: '', what: 'has no name', remedy: '' }
    ];
    const refusal = {
      message: 'No.',
      remedy: 'Wait.',
      problems,
      canRetry: true
    };
    const { node, sent, texts, show, model } = shown({
      type: 'refused',
      refusal
    });
    expect(texts('.det-Submit-status p')).toEqual(['No.', 'Wait.']);
    expect(texts('.det-Submit-problems li')).toEqual([
      'cell 3 uses a lockMake it there.',
      'has no name'
    ]);
    buttonOf(node, 'Try again').click();
    expect(sent).toEqual([{ type: 'retried' }]);
    show(
      next(model, { type: 'refused', refusal: { ...refusal, canRetry: false } })
    );
    expect(() => buttonOf(node, 'Try again')).toThrow();
  });

  it('says what keeps a notebook from being sent', () => {
    const problems = [{ where: 'cell 1', what: 'holds a secret', remedy: '' }];
    const { texts } = shown(inspected({ problems }));
    expect(texts('.det-Submit-error')).toEqual([
      'The notebook cannot be sent as it stands.'
    ]);
    expect(texts('.det-Submit-problems li')).toEqual(['cell 1 holds a secret']);
  });

  it('is text throughout, whatever the notebook holds', () => {
    const problem = { where: NASTY, what: NASTY, remedy: NASTY };
    const { node, show, model } = shown(
      inspected({
        warnings: [NASTY],
        changed: [{ cell: 1, id: 'c1', why: NASTY }],
        call: { cell: 1, id: 'c1', line: 1, kind: NASTY, framework: NASTY },
        problems: [problem]
      })
    );
    expect(node.textContent).toContain(NASTY);
    expect(node.querySelector('img, script')).toBeNull();
    const refusal = {
      message: NASTY,
      remedy: NASTY,
      problems: [problem],
      canRetry: true
    };
    show(next(model, { type: 'refused', refusal }));
    expect(node.querySelector('img, script')).toBeNull();
  });
});

describe('the choice', () => {
  it('is told as it is made', () => {
    const { input, sent } = shown(inspected());
    const change = (element: HTMLInputElement, event: string) =>
      element.dispatchEvent(new Event(event));
    expect([
      input('[value=cluster]').checked,
      input('[type=number]').value
    ]).toEqual([true, '']);
    change(input('[value=here]'), 'change');
    input('[type=number]').value = '3';
    change(input('[type=number]'), 'input');
    input('[type=number]').value = '';
    change(input('[type=number]'), 'input');
    input('[type=checkbox]').checked = true;
    change(input('[type=checkbox]'), 'change');
    expect(sent).toEqual([
      { type: 'chosen', choice: { place: 'here' } },
      { type: 'chosen', choice: { slots: 3 } },
      { type: 'chosen', choice: { slots: null } },
      { type: 'chosen', choice: { test: true } }
    ]);
  });

  it('of a call is there where the notebook makes several', () => {
    const call = { cell: 3, id: 'c3', line: 2, kind: 'fit', running: null };
    const { node, texts, sent, show, model } = shown(
      inspected({
        calls: [call, { ...call, cell: 5, id: 'c5', running: 7 }],
        chosen: 1
      })
    );
    const select = node.querySelector('select')!;
    expect(texts('option')).toEqual([
      'fit() in cell [3], line 2',
      'fit() in cell [5], line 2, called in cell [7]'
    ]);
    expect([select.value, select.disabled]).toEqual(['1', false]);
    select.value = '0';
    select.dispatchEvent(new Event('change'));
    expect(sent).toEqual([{ type: 'chosen', choice: { call: 0 } }]);
    show(next(next(model, sent[0]!), inspected({ calls: [call] })));
    expect([select.length, select.value, select.disabled]).toEqual([
      1,
      '0',
      true
    ]);
    const older = shown(inspected()).node.querySelector('select')!;
    expect([older.disabled, older.textContent]).toEqual([
      true,
      'fit() in cell [5], line 2'
    ]);
  });

  it('has a name for each of its fields', () => {
    const { node } = shown(inspected());
    const fields = [...node.querySelectorAll('input')];
    expect(fields.map(field => field.labels?.[0]?.textContent?.trim())).toEqual(
      [
        'On the cluster',
        'Here, in the kernel of this notebook',
        'Slots for each trial (empty: as configured)',
        'Only test: one minimal loop of training, validation and checkpointing'
      ]
    );
  });

  it('says what is wrong with it, at its field', () => {
    const { input, node, texts, show, model } = shown(inspected(), {
      type: 'slots-known',
      slots: 2
    });
    expect([texts('.det-Choice-hint'), texts('[role=alert]')]).toEqual([
      ['of 2'],
      []
    ]);
    expect(input('[type=number]').max).toBe('2');
    show(next(model, { type: 'chosen', choice: { slots: 5 } }));
    expect(texts('[role=alert]')).toEqual([
      'The master has 2 slots: choose at most 2.'
    ]);
    const field = input('[type=number]');
    expect(field.getAttribute('aria-invalid')).toBe('true');
    const described = node.querySelector(
      `#${field.getAttribute('aria-describedby')}`
    );
    expect(described?.textContent).toContain('at most 2');
  });

  it('says what the slots are', () => {
    const known: DialogEvent = {
      type: 'slots-known',
      slots: 2,
      kinds: 'NVIDIA H100 (80.0 GB)'
    };
    const { texts } = shown(inspected(), known);
    expect(texts('.det-Choice-hint')).toEqual(['of 2: NVIDIA H100 (80.0 GB)']);
  });

  it('leaves alone what is being typed', () => {
    const { input, show, model } = shown(inspected());
    const field = input('[type=number]');
    field.focus();
    for (const [typed, slots] of [
      ['', null],
      ['01', 1]
    ] as const) {
      field.value = typed;
      show(next(model, { type: 'chosen', choice: { slots } }));
      expect(field.value).toBe(typed);
    }
    field.blur();
    show(next(model, { type: 'chosen', choice: { slots: 4 } }));
    expect(field.value).toBe('4');
  });

  it('cannot be changed while the notebook is sent', () => {
    const { node, show, model } = shown(inspected());
    const disabled = () =>
      [...node.querySelectorAll('input')].map(each => each.disabled);
    expect(disabled()).toEqual([false, false, false, false]);
    show(next(model, { type: 'submitted' }));
    expect(disabled()).toEqual([true, true, true, true]);
  });
});

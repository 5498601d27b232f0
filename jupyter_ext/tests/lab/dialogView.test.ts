// @vitest-environment jsdom
import { textsOf } from '../shared/browserParts';
import { afterEach, describe, expect, it } from 'vitest';

import {
  type DialogEvent,
  next,
  type NotebookFacts,
  opened
} from '../../src/lab/submission/dialogModel';
import { DialogView } from '../../src/lab/submission/dialogView';
import { NASTY } from '../shared/examples';
import { chosen, NOTEBOOK, notebookRun } from './facts';

const views: Array<{ dispose(): void }> = [];

afterEach(() => {
  views.splice(0).forEach(view => view.dispose());
  document.body.replaceChildren();
});

/** The dialog of a notebook after events; what is done in it happens. */
function shown(facts: Partial<NotebookFacts> = {}, ...events: DialogEvent[]) {
  let model = opened({ ...NOTEBOOK, ...facts });
  const take = (event: DialogEvent) => {
    model = next(model, event);
    view.showModel(model);
  };
  const view = new DialogView(take);
  views.push(view);
  document.body.append(view.node);
  view.showModel(model);
  events.forEach(take);
  const { node } = view;
  return {
    node,
    take,
    choice: () => model.choice,
    input: (selector: string) =>
      node.querySelector<HTMLInputElement>(`input${selector}`)!,
    texts: (where: string) => textsOf(node, where)
  };
}

function type(input: HTMLInputElement, text: string): void {
  input.value = text;
  input.dispatchEvent(new Event('input'));
}

function check(input: HTMLInputElement): void {
  input.checked = true;
  input.dispatchEvent(new Event('change'));
}

const PARAMETERS: DialogEvent = {
  type: 'described',
  description: { parameters: { lr: '0.1', name: "'adam'" }, running: null }
};

describe('the dialog', () => {
  it('says in one line what will happen, and what else is to be known', () => {
    const running = notebookRun();
    const { texts, take } = shown();
    expect(texts('.det-Submit-line')[0]).toContain('Runs 6 cells');
    take({ type: 'described', description: { parameters: {}, running } });
    expect(texts('.det-Submit-remarks p')).toEqual([
      'Run 3 of this notebook goes on (cell 5 of 12). Another one begins beside it.'
    ]);
    take({ type: 'refused', refusal: ['Kernel `x` is gone.', NASTY] });
    expect(texts('.det-Submit-error p')).toEqual(['Kernel x is gone.', NASTY]);
  });

  it('is text throughout, whatever the notebook holds', () => {
    const running = notebookRun({ path: NASTY });
    const { node } = shown(
      { name: NASTY, kernel: NASTY },
      {
        type: 'described',
        description: { parameters: { [NASTY]: NASTY }, running }
      },
      { type: 'refused', refusal: [NASTY] }
    );
    expect(node.textContent).toContain(NASTY);
    expect(node.querySelector('img, script')).toBeNull();
  });
});

describe('the choice', () => {
  it('is told as it is made', () => {
    const { input, choice } = shown();
    expect(input('[value=""]').checked).toBe(true);
    check(input('[value=local]'));
    type(input('[type=number]'), '3');
    check(input('[type=checkbox]'));
    expect(choice()).toMatchObject({ place: 'local', slots: 3, test: true });
    type(input('[type=number]'), '');
    expect(choice().slots).toBeNull();
  });

  it('has a field for each parameter, and tells those that differ', () => {
    const { texts, node, choice, take } = shown({}, PARAMETERS);
    expect(texts('.det-Choice-parameters label')).toEqual(['lr', 'name']);
    const [rate, name] = node.querySelectorAll<HTMLInputElement>(
      '.det-Choice-parameters input'
    );
    expect([rate?.value, name?.value]).toEqual(['0.1', "'adam'"]);
    type(rate!, '0.5');
    take(PARAMETERS);
    expect(rate!.value).toBe('0.5');
    expect(choice().parameters).toEqual({ lr: '0.5' });
    type(rate!, '0.1');
    expect(choice().parameters).toEqual({});
  });

  it('of the open kernel is there where one is, and leaves nothing else to choose', () => {
    const { input } = shown();
    expect(input('[value=kernel]').closest('label')!.hidden).toBe(true);
    const open = shown({ first: 3 });
    expect(open.input('[value=kernel]').closest('label')!.hidden).toBe(false);
    check(open.input('[value=kernel]'));
    expect(open.input('[type=number]').matches(':disabled')).toBe(true);
    expect(open.input('[type=checkbox]').matches(':disabled')).toBe(true);
    expect(open.input('[value=local]').matches(':disabled')).toBe(false);
    expect(open.texts('.det-Submit-line')[0]).toContain('cells 3 to 6');
  });

  it('of slots says how many there are, and what is wrong', () => {
    const { texts, input, take } = shown(
      {},
      { type: 'slots-known', slots: 2, kinds: 'CPU' },
      chosen({ slots: 3 })
    );
    expect(texts('.det-Choice-hint')).toEqual(['of 2: CPU']);
    expect(texts('.det-Choice-problem')).toEqual([
      'The master has 2 slots: choose at most 2.'
    ]);
    expect(input('[type=number]').getAttribute('aria-invalid')).toBe('true');
    take(chosen({ slots: 2 }));
    expect(texts('.det-Choice-problem')).toEqual([]);
  });

  it('cannot be changed while it is sent', () => {
    const { input } = shown({}, { type: 'submitted' });
    for (const name of ['[value=local]', '[type=number]', '[type=checkbox]']) {
      expect(input(name).matches(':disabled')).toBe(true);
    }
  });
});

// @vitest-environment jsdom
import { buttonOf } from './browserParts';
import { describe, expect, it } from 'vitest';

import { setName } from '../../src/shared/dom';
import { detail, NASTY, trial } from './examples';
import { frame, shown } from './shownView';

const TRIALS = [
  trial({ id: 8, best_validation: 0.5, batches: 90, hparams: { rate: 0.2 } }),
  trial({ id: 9, best_validation: 0.25, batches: 100, hparams: { rate: 10 } }),
  trial({ id: 10, best_validation: null, batches: 5, hparams: { rate: 9 } }),
  trial({ id: 11, best_validation: 0.75, batches: 20, hparams: { rate: 1 } })
];

function search(smaller = true) {
  const experiment = detail({
    trials: 4,
    metric: 'val_loss',
    smaller_is_better: smaller
  });
  const found = shown({ trials: TRIALS, experiment });
  const table = found.root.querySelector('[aria-label=Trials] table')!;
  return {
    ...found,
    table,
    ids: () =>
      [...table.querySelectorAll<HTMLElement>('tbody tr')].map(
        row => row.dataset.key
      ),
    press: (title: string) => buttonOf(table, title).click(),
    sorts: () =>
      [...table.querySelectorAll('[aria-sort]')].map(
        head => `${head.textContent} ${head.getAttribute('aria-sort')}`
      )
  };
}

describe('the trials', () => {
  it('are best first, those without a value last', () => {
    expect(search().ids()).toEqual(['9', '8', '11', '10']);
    expect(search(false).ids()).toEqual(['11', '8', '9', '10']);
  });

  it.each([
    ['Trial', ['8', '9', '10', '11'], ['11', '10', '9', '8']],
    ['Batches', ['10', '11', '8', '9'], ['9', '8', '11', '10']],
    ['Best val_loss', ['9', '8', '11', '10'], ['11', '8', '9', '10']]
  ])('are sorted by %s, then the other way', (title, up, down) => {
    const { ids, press, sorts } = search();
    press(title);
    expect([ids(), sorts()]).toEqual([up, [`${title} ascending`]]);
    press(title);
    expect([ids(), sorts()]).toEqual([down, [`${title} descending`]]);
    press(title);
    expect([ids(), sorts()]).toEqual([['9', '8', '11', '10'], []]);
  });

  it('are sorted by texts where a column has no numbers', async () => {
    const { ids, press, show } = search();
    press('State');
    await show({ trials: TRIALS.with(2, { ...TRIALS[2]!, state: 'ERROR' }) });
    expect(ids()[0]).toBe('10');
    press('Hyperparameters');
    expect(ids()).toEqual(['8', '11', '10', '9']);
  });

  it('keep the focus in a row that moves', async () => {
    const { ids, show, table } = search();
    const row = table.querySelector<HTMLElement>('tr[data-key="8"]')!;
    row.focus();
    await show({
      trials: TRIALS.with(0, { ...TRIALS[0]!, best_validation: 0.1 })
    });
    expect(ids()[0]).toBe('8');
    await show({
      trials: TRIALS.with(0, { ...TRIALS[0]!, best_validation: 0.9 })
    });
    expect(ids()).toEqual(['9', '11', '8', '10']);
    expect(document.activeElement).toBe(row);
    await frame();
  });
});

describe('a name', () => {
  it('keeps its end where its middle has no room, and is whole on hover', () => {
    const element = document.createElement('span');
    setName(element, 'digits_convolutional_lr_0.01');
    expect(element.title).toBe('digits_convolutional_lr_0.01');
    expect(element.textContent).toBe('digits_convolutional_lr_0.01');
    expect(element.lastElementChild?.textContent).toBe('_lr_0.01');
    setName(element, NASTY);
    expect(element.querySelector('img')).toBeNull();
    setName(element, '🙂'.repeat(9));
    expect(element.lastElementChild?.textContent).toBe('🙂'.repeat(8));
  });
});

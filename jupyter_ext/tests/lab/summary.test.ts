import { describe, expect, it } from 'vitest';

import { next } from '../../src/lab/submission/dialogModel';
import {
  callText,
  masterText,
  remarks,
  summaryText
} from '../../src/lab/submission/summary';
import { after, inspected, inspection } from './facts';

describe('what the dialog says', () => {
  it('counts the cells that run in one line', () => {
    const many = inspection({ cells_in_all: 6 });
    expect(summaryText(many, 'cluster', false)).toBe(
      'Runs 2 of 6 cells in a process of their own and submits the training.'
    );
    expect(summaryText(many, 'here', true)).toBe(
      'Runs 2 of 6 cells in this kernel and tests one minimal loop.'
    );
    expect(summaryText(inspection(), 'cluster', true)).toBe(
      'Runs 2 cells in a process of their own and submits a test of one minimal loop.'
    );
  });

  it('names the call', () => {
    expect(callText(inspection(), 'cluster')).toBe(
      'Submits fit() of Keras, cell [5], line 2, after every cell above.'
    );
    const { call } = inspection();
    const change = { prompts: false, call: { ...call, framework: '' } };
    expect(callText(inspection(change), 'here')).toBe(
      'Runs fit(), code cell 5, line 2, after every cell above.'
    );
  });

  it('says of the master what a user has to know', () => {
    expect(masterText(inspection())).toBe('');
    expect(masterText(inspection({ master: null }))).toContain(
      'submitting starts one'
    );
    const master_problem = 'The master at http://x refuses the token.';
    expect(masterText(inspection({ master: null, master_problem }))).toBe(
      master_problem
    );
  });

  it('brings warnings first, and cells of one kind together', () => {
    const why = 'not run yet';
    const changed = [1, 2, 3, 5, 7, 8].map(cell => ({
      cell,
      id: `c${cell}`,
      why
    }));
    const other = { cell: 4, id: 'c4', why: 'text differs' };
    const groups = remarks(
      after(inspected({ warnings: ['Slow.'], changed: [...changed, other] }))
    );
    expect(groups.map(({ kind, lines }) => [kind, lines])).toEqual([
      ['warning', ['Slow.']],
      [
        'changed',
        [
          'Cells [1] to [3], [5], [7], [8]: not run yet',
          'Cell [4]: text differs'
        ]
      ]
    ]);
    const [placed] = remarks(
      after(inspected({ prompts: false, changed: [...changed, other] }))
    );
    expect(placed?.lines).toEqual([
      'Code cells 1 to 3, 5, 7, 8: not run yet',
      'Code cell 4: text differs'
    ]);
  });

  it('says where it trains when that is the kernel', () => {
    const here = next(after(inspected()), {
      type: 'chosen',
      choice: { place: 'here' }
    });
    expect(remarks(here)).toMatchObject([{ kind: 'note' }]);
    expect(remarks(here)[0]?.lines[0]).toContain('Runs 2 cells');
  });

  it('says that a local notebook is sent all the same', () => {
    const model = after(inspected({ written: { place: 'here', test: false } }));
    expect(remarks(model)[0]?.lines[0]).toContain(
      'sent to the cluster all the same'
    );
  });
});

import { describe, expect, it } from 'vitest';

import { next } from '../../src/lab/submission/dialogModel';
import {
  callText,
  remarks,
  sizeText,
  statusText,
  summaryText,
  totalText
} from '../../src/lab/submission/summary';
import { after, inspected, inspection } from './facts';

describe('what the dialog says', () => {
  it('counts cells, values, files and trials in one line', () => {
    const row = (what: string, how: string, status = 'new') => ({
      what,
      how,
      size: 1,
      cell: '',
      note: '',
      status: status as 'new'
    });
    const rows = [
      row('4 cells', 'source'),
      row('scaler', 'pickle'),
      row('table', 'value'),
      row('data.csv', 'file'),
      row('large.csv', 'file', 'not sent'),
      row('cell 1', 'runs again')
    ];
    const many = { rows, total: 3_200_000, cells_in_all: 6, trials: 4 };
    expect(summaryText(inspection(many), 'cluster', false)).toBe(
      'Sends 4 of 6 cells, 2 values and 1 file (3.2 MB) and trains 4 trials.'
    );
    expect(summaryText(inspection(many), 'here', true)).toBe(
      'Runs 2 of 6 cells in this kernel and tests one minimal loop.'
    );
    expect(summaryText(inspection({ trials: 1 }), 'cluster', false)).toBe(
      'Sends 5 cells (1.6 kB) and trains 1 trial.'
    );
  });

  it('names the call and the size', () => {
    expect(callText(inspection(), 'cluster')).toBe(
      'Sends fit() of Keras, cell [5], line 2, and every Python cell above.'
    );
    expect(callText(inspection({ prompts: false }), 'here')).toBe(
      'Runs fit() of Keras, code cell 5, line 2, and every Python cell above.'
    );
    expect(totalText(inspection({ total: 34_000, new: 12_000 }))).toBe(
      '34 kB in all, of which 12 kB are new to the master.'
    );
    expect(totalText(inspection({ new: 0 }))).toBe(
      '1.6 kB in all; the master has all of it already.'
    );
    expect(totalText(inspection({ master: null }))).toContain(
      'submitting starts one'
    );
  });

  it('says why a master that is there cannot be used', () => {
    const master_problem = 'The master at http://x refuses the token.';
    expect(totalText(inspection({ master: null, master_problem }))).toBe(
      '1.6 kB in all. The master at http://x refuses the token.'
    );
  });

  it('says that all is new where nothing was there', () => {
    expect(totalText(inspection({ total: 34_000, new: 34_000 }))).toBe(
      '34 kB in all, all of it new to the master.'
    );
  });

  it('has no size for what is only said', () => {
    const row = {
      what: 'cell 1',
      how: 'runs again',
      cell: '1',
      note: '',
      status: 'new'
    } as const;
    expect(sizeText({ ...row, size: 0 })).toBe('');
    expect(sizeText({ ...row, size: 900 })).toBe('900 B');
    expect(statusText({ ...row, size: 0 })).toBe('');
    expect(statusText({ ...row, how: 'source', size: 900 })).toBe('new');
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

  it('lists the cells that run first, unless it trains here', () => {
    const must_run = [{ cell: null, id: 'c2', why: 'computes len(x)' }];
    const model = after(inspected({ must_run }));
    expect(remarks(model)).toMatchObject([
      { kind: 'must-run', lines: ['A cell: computes len(x)'] }
    ]);
    const here = next(model, { type: 'chosen', choice: { place: 'here' } });
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

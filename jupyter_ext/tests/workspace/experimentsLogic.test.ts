/** What the table of experiments works out: columns, filters, completion, selection, groups, actions on several. */
import { describe, expect, it } from 'vitest';

import { RequestError } from '../../src/shared/transport';
import { forEach } from '../../src/workspace/experiments/bulk';
import {
  columnOf,
  columnsText,
  moved,
  needed,
  nextSort,
  readColumns
} from '../../src/workspace/experiments/columns';
import {
  completed,
  cursorAt,
  isUnfinished,
  suggestions
} from '../../src/workspace/experiments/completion';
import {
  filterParameters,
  listQuery,
  NO_FILTERS,
  queryOf,
  readFilters
} from '../../src/workspace/experiments/filters';
import {
  bandOf,
  groupName,
  meanText,
  scaleOf
} from '../../src/workspace/experiments/groupStatistics';
import {
  groupItems,
  rowItems,
  shift
} from '../../src/workspace/experiments/items';
import { metricValue, type Row } from '../../src/workspace/experiments/rows';
import {
  allOrNone,
  extended,
  NOTHING,
  pruned,
  toggled
} from '../../src/workspace/experiments/selection';
import { NAMES, row } from './experimentRows';

describe('columns', () => {
  it('show metrics by their last, smallest, greatest and best value, and nested hyperparameters', () => {
    const shown = row({ id: 7 });
    const text = (key: string) => columnOf(key)?.text(shown);
    expect(text('metric:val_accuracy')).toBe('0.9');
    expect(text('last:val_accuracy')).toBe('0.8');
    expect(text('min:val_accuracy')).toBe('0.1');
    expect(text('metric:loss')).toBe('0.2');
    expect(text('max:loss')).toBe('2');
    expect(text('hp:optimizer.name')).toBe('adam');
    expect(text('hp:nothing')).toBe('—');
    expect(text('size')).toBe('1.25 MB');
    expect(text('slots')).toBe('2');
    expect(columnOf('nonsense')).toBeNull();
    expect(columnOf('nonsense:x')).toBeNull();
  });

  it('take infinite values, which come as text', () => {
    const metrics: Row['metrics'] = [
      {
        kind: 'validation',
        name: 'loss',
        last_batch: 1,
        last: 'Infinity' as unknown as number,
        minimum: null,
        maximum: null
      }
    ];
    expect(metricValue({ ...row({ id: 1 }), metrics }, 'loss', 'last')).toBe(
      Infinity
    );
  });

  it('stand in the address, whatever signs are in a name, and the name comes first', () => {
    const columns = ['name', 'hp:a,b & "c"', 'last:val/loss'].map(key =>
      columnOf(key)!
    );
    const text = columnsText(columns);
    expect(readColumns(text).map(({ key }) => key)).toEqual(
      columns.map(({ key }) => key)
    );
    expect(readColumns('id,id,nonsense').map(({ key }) => key)).toEqual([
      'name',
      'id'
    ]);
    expect(columnsText(readColumns(''))).toBe('');
  });

  it('move, but never before the name', () => {
    const columns = readColumns('name,id,state,best');
    const keys = (to: number) =>
      moved(columns, 'best', to).map(({ key }) => key);
    expect(keys(1)).toEqual(['name', 'best', 'id', 'state']);
    expect(keys(-5)).toEqual(['name', 'best', 'id', 'state']);
    expect(moved(columns, 'name', 2)).toEqual(columns);
  });

  it('sort one way, the other way, then not at all', () => {
    const column = columnOf('duration')!;
    const first = nextSort(column, '');
    expect(first).toBe('duration desc');
    expect(nextSort(column, first)).toBe('duration asc');
    expect(nextSort(column, 'duration asc')).toBe('');
    expect(nextSort(columnOf('labels')!, 'id asc')).toBe('id asc');
  });

  it('say which metrics the rows must have', () => {
    expect(needed(readColumns('hp:lr,last:val_loss'))).toEqual({
      hparams: true,
      metrics: ['val_loss', 'loss']
    });
  });
});

describe('filters', () => {
  it('search plain words in names, and numbers as ids too', () => {
    expect(queryOf('digits  wide')).toBe('name ~ "digits" and name ~ "wide"');
    expect(queryOf('#7')).toBe('(id = 7 or name ~ "#7")');
    expect(queryOf(' lr > 0.1 ')).toBe('lr > 0.1');
    expect(queryOf('say "no')).toBe('say "no');
  });

  it('put several states into the query, in brackets', () => {
    const filters = {
      ...NO_FILTERS,
      query: 'lr > 1 or id = 2',
      states: ['Queued', 'Running']
    };
    expect(listQuery(filters)).toMatchObject({
      query: '(lr > 1 or id = 2) and state in (Queued, Running)',
      state: undefined
    });
    expect(listQuery({ ...NO_FILTERS, states: ['Failed'] })).toMatchObject({
      query: undefined,
      state: 'Failed'
    });
  });

  it('come back from the address as they were', () => {
    const filters = {
      query: 'a & b',
      states: ['Running', 'Failed'],
      labels: ['with, comma', 'größe'],
      project: 'vision/digits',
      since: '7d',
      archived: true
    };
    expect(readFilters(filterParameters(filters))).toEqual(filters);
    expect(readFilters({})).toEqual(NO_FILTERS);
  });
});

describe('completion', () => {
  const at = (text: string) => {
    const cursor = text.includes('|') ? text.indexOf('|') : text.length;
    return cursorAt(text.replace('|', ''), cursor);
  };
  const offered = (text: string) =>
    suggestions(at(text), NAMES).map(({ text: written }) => written);

  it.each([
    ['', 'name', ''],
    ['va', 'name', 'va'],
    ['val_loss ', 'operator', ''],
    ['val_loss <', 'value', ''],
    ['val_loss < 0.3', 'value', '0.3'],
    ['val_loss < 0.3 ', 'joiner', ''],
    ['val_loss < 0.3 an', 'joiner', 'an'],
    ['val_loss < 0.3 and not (la', 'name', 'la'],
    ['label:', 'value', ''],
    ['label:ba', 'value', 'ba'],
    ['state in (Running, ', 'value', ''],
    ['state in (Running) ', 'joiner', ''],
    ['la| and id = 3', 'name', 'la'],
    ['label:"with sp', 'value', '"with sp']
  ])('knows what is expected in %j', (text, expects, prefix) => {
    expect(at(text)).toMatchObject({ expects, prefix });
  });

  it('offers states, labels, operators, metrics and hyperparameters where they belong', () => {
    expect(offered('state:')).toContain('Running');
    expect(offered('label:b')).toEqual(['baseline']);
    expect(offered('label:')).toContain('"with space"');
    expect(offered('created ')).toContain('>=');
    expect(offered('created ')).not.toContain('~');
    expect(offered('val_l')).toEqual(['val_loss']);
    expect(offered('val l')).not.toContain('metric."val loss"');
    expect(offered('optim')).toEqual(['hp.optimizer.name']);
    expect(offered('archived:')).toEqual(['yes', 'no']);
  });

  it('writes a choice in the place of what was typed', () => {
    const cursor = at('la| and id = 3');
    const [label] = suggestions(cursor, NAMES);
    expect(completed('la and id = 3', cursor, label!)).toEqual({
      text: 'label and id = 3',
      cursor: 5
    });
  });

  it('ends for any text at any place', () => {
    const text = 'a.b "x\\" (, ) not<=~in ((,: \'é 1e-3';
    for (let cursor = 0; cursor <= text.length; cursor += 1) {
      expect(cursorAt(text, cursor).from).toBeLessThanOrEqual(cursor);
    }
  });
});

describe('selection', () => {
  it('takes ranges in the order of the table, and drops what is gone', () => {
    const order = [9, 8, 7, 6];
    const range = extended(toggled(NOTHING, 8), order, 6);
    expect([...range.ids]).toEqual([8, 7, 6]);
    expect([...pruned(range, [9, 8]).ids]).toEqual([8]);
    expect(allOrNone(range, order).ids.size).toBe(4);
    expect(allOrNone(allOrNone(range, order), order)).toBe(NOTHING);
    expect(toggled(range, 8).ids.has(8)).toBe(false);
  });
});

describe('groups', () => {
  const group = (
    value: unknown,
    mean: number | null,
    deviation: number | null
  ) => ({
    value,
    count: 3,
    measured: 3,
    mean,
    deviation,
    best: mean,
    ids: [3, 2, 1]
  });

  it('lie on one scale with their bands', () => {
    const groups = [
      group('a', 1, 1),
      group('b', 3, null),
      group(null, null, null)
    ];
    const scale = scaleOf(groups)!;
    expect(scale).toEqual({ low: 0, high: 3 });
    expect(bandOf(groups[0]!, scale)).toEqual({
      from: 0,
      middle: 1 / 3,
      to: 2 / 3
    });
    expect(bandOf(groups[2]!, scale)).toBeNull();
    expect(scaleOf([group('a', null, null)])).toBeNull();
    expect(meanText(groups[0]!, 'metric:loss')).toBe('1 ± 1');
    expect(meanText(group('a', 90_000, 1000), 'duration')).toBe('1:30 ± 1 s');
    expect(groupName('hp:lr', null)).toBe('without lr');
    expect(groupName('hp:lr', 0.1)).toBe('0.1');
  });

  it('open to their experiments', () => {
    const groups = [group('a', 1, 1), group('b', 3, null)];
    expect(groupItems(groups, new Set()).length).toBe(2);
    expect(
      groupItems(groups, new Set(['group "a"'])).map(({ kind }) => kind)
    ).toEqual(['group', 'row', 'row', 'row', 'group']);
  });
});

it('a new experiment above moves the table by one row, so that what is seen stays', () => {
  expect(shift(rowItems([5, 4, 3]), rowItems([6, 5, 4, 3]), 1)).toBe(1);
  expect(shift(rowItems([5, 4, 3]), rowItems([5, 3]), 1)).toBe(-1);
  expect(shift(rowItems([5]), rowItems([]), 0)).toBe(0);
});

it('an experiment that is refused does not stop the others, and all are told in order', async () => {
  const progress: number[] = [];
  const outcome = await forEach(
    [6, 5, 4, 3, 2, 1],
    id =>
      id === 4
        ? Promise.reject(
            new RequestError('It goes on.', 409, 'refused', 'Stop it.')
          )
        : Promise.resolve(id),
    finished => progress.push(finished)
  );
  expect(outcome.done.map(({ id }) => id)).toEqual([6, 5, 3, 2, 1]);
  expect(outcome.failed).toEqual([{ id: 4, message: 'It goes on. Stop it.' }]);
  expect(progress.at(-1)).toBe(6);
});

it.each([
  ['val_loss', true],
  ['val_loss <', true],
  ['val_loss < ', true],
  ['val_loss < 0.3', false],
  ['val_loss < 0.3 and', false],
  ['val_loss < 0.3 and ', true],
  ['digits', false],
  ['digits new', false],
  ['', false]
])('the search %j waits for its rest: %s', (text, unfinished) => {
  expect(isUnfinished(text, NAMES)).toBe(unfinished);
});

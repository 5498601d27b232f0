/** What the experiment's page works out by itself. */
import { expect, test } from 'vitest';

import {
  isMagicOnly,
  joinedCells
} from '../../src/workspace/experiment/cellTexts';
import {
  freedBytes,
  freedTexts
} from '../../src/workspace/experiment/deletion';
import {
  causesOf,
  framesOf,
  namesOf
} from '../../src/workspace/experiment/failures';
import {
  csvRows,
  fileTree,
  previewKind
} from '../../src/workspace/experiment/fileTree';
import { highlighted } from '../../src/workspace/experiment/highlight';
import { missingTab, tabsOf } from '../../src/workspace/experiment/tabs';
import { withNewer } from '../../src/workspace/experiment/useExperiment';
import { sorted } from '../../src/workspace/experiment/virtualTable';
import { differences, yamlText } from '../../src/workspace/experiment/yaml';
import { artifact, detail, trial, userError, view } from '../shared/examples';

const failedTrials = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    trial({
      id: index + 1,
      state: 'ERROR',
      error: userError({ message: `bad shape ${index}`, batch: index })
    })
  );

test('trials that failed alike are one cause, whatever numbers their messages have', () => {
  const causes = causesOf(
    view({
      trials: failedTrials(12),
      experiment: detail({
        state: 'ERROR',
        error: userError({ message: 'bad shape 3' })
      })
    })
  );

  expect(causes).toHaveLength(1);
  expect(causes[0]).toMatchObject({
    type: 'ValueError',
    place: 'cell [5], line 3',
    cell: 5,
    trialId: 1
  });
  expect(causes[0]?.trials).toHaveLength(12);
  expect(namesOf(causes[0]?.trials ?? [])).toBe('1, 2, 3, 4, 5, 6, 7, 8…');
});

test('another place in the code is another cause, and a trial that went well is none', () => {
  const other = trial({
    id: 9,
    state: 'ERROR',
    error: userError({ cell: 6 })
  });
  const well = trial({ id: 10, state: 'COMPLETED', error: userError() });

  const causes = causesOf(view({ trials: [...failedTrials(2), other, well] }));

  expect(causes.map(({ trials }) => trials)).toEqual([[1, 2], [9]]);
});

test('a remedy is told where the message has none', () => {
  const [cause] = causesOf(
    view({
      trials: [
        trial({
          state: 'ERROR',
          error: userError({
            type: 'ModuleNotFoundError',
            message: "No module named 'x'"
          })
        })
      ]
    })
  );
  expect(cause?.remedy).toContain('Install the module');
});

test('frames that are not the user’s are told apart', () => {
  const frames = framesOf(
    [
      'Traceback (most recent call last):',
      '  Cell [5], line 3',
      '    model.fit(x)',
      '  File "/env/lib/python3.11/site-packages/keras/fit.py", line 2, in fit',
      '    call()',
      'ValueError: bad shape'
    ].join('\n')
  );

  expect(frames.map(({ foreign }) => foreign)).toEqual([
    false,
    false,
    true,
    false
  ]);
  expect(frames[2]?.text).toContain('call()');
});

test('tabs without anything to show are left out, and say why to who asks for them', () => {
  const single = view({ experiment: detail({ bundle_id: 'b' }) });
  const names = tabsOf(single).map(({ name }) => name);

  expect(names).not.toContain('search');
  expect(names).not.toContain('report');
  expect(names).toContain('code');
  expect(missingTab(single, 'search')).toContain('one trial');
  expect(
    tabsOf(view({ trials: [trial(), trial({ id: 4 })] })).map(
      ({ name }) => name
    )
  ).toContain('search');
});

test('where no program was kept, the tab says why', () => {
  const no_program =
    'The code could not be captured: it was typed at a prompt.';
  const kept = view({ experiment: detail({ bundle_id: null, no_program }) });
  expect(tabsOf(kept).map(({ name }) => name)).not.toContain('code');
  expect(missingTab(kept, 'code')).toBe(no_program);
});

test('a change shows at once, until the feed says something newer', () => {
  const known = view();
  const newer = { values: { name: 'mine' }, base: known.experiment };

  expect(withNewer(known, newer).experiment?.name).toBe('mine');
  const later = view({ experiment: detail({ name: 'theirs' }) });
  expect(withNewer(later, newer).experiment?.name).toBe('theirs');
});

test('columns sort both ways, and what has no value stands last', () => {
  const columns = [
    {
      name: 'n',
      title: 'N',
      value: (row: { n: number | null }) => row.n,
      cell: () => ''
    }
  ];
  const rows = [{ n: 10 }, { n: null }, { n: 2 }];

  expect(sorted(rows, columns, 'n').map(({ n }) => n)).toEqual([2, 10, null]);
  expect(sorted(rows, columns, '-n').map(({ n }) => n)).toEqual([10, 2, null]);
});

test('YAML quotes what it would read as something else', () => {
  expect(
    yamlText({ a: [1, { b: 'x', c: [] }], on: 'yes', d: { e: '1' }, f: null })
  ).toBe(
    [
      'a:',
      '  - 1',
      '  - b: x',
      '    c: []',
      '"on": "yes"',
      'd:',
      '  e: "1"',
      'f: null'
    ].join('\n')
  );
});

test('differences are told leaf by leaf', () => {
  expect(
    differences({ a: { b: 1, c: 2 }, d: null }, { a: { b: 1, c: 3 }, e: [1] })
  ).toEqual([
    { path: 'a.c', before: 2, after: 3 },
    { path: 'e', before: undefined, after: [1] }
  ]);
});

test('files stand in their folders, with the size of all below', () => {
  const tree = fileTree([
    artifact({ path: 'z.txt', size: 1 }),
    artifact({ path: 'plots/10.png', size: 2 }),
    artifact({ path: 'plots/9.png', size: 3 })
  ]);

  expect(tree.map(({ name, size }) => [name, size])).toEqual([
    ['plots', 5],
    ['z.txt', 1]
  ]);
  expect(tree[0]?.children.map(({ name }) => name)).toEqual([
    '9.png',
    '10.png'
  ]);
});

test('a file is shown as what it is', () => {
  const kind = (path: string, size = 10) =>
    previewKind(artifact({ path, size }));

  expect(kind('a.PNG')).toBe('picture');
  expect(kind('a.csv')).toBe('table');
  expect(kind('notes')).toBe('text');
  expect(kind('model.keras')).toBe('none');
  expect(kind('a.txt', 1e9)).toBe('none');
});

test('a table with commas, line ends and quotes in its cells is read', () => {
  expect(csvRows('a,b\r\n"1,5","x\n""y"""\n')).toEqual([
    ['a', 'b'],
    ['1,5', 'x\n"y"']
  ]);
  expect(csvRows('a\n'.repeat(5000))).toHaveLength(1000);
});

test('coloured code is the code', () => {
  const source = 'def f(x):\n    # why\n    return "a" + str(1)\n';
  const parts = highlighted(source);

  expect(parts.map(({ text }) => text).join('')).toBe(source);
  expect(parts.find(({ text }) => text === 'def')?.kind).toBe('keyword');
  expect(parts.some(({ kind }) => kind === 'comment')).toBe(true);
});

test('cells of magics alone are no part of a program', () => {
  expect(isMagicOnly('%matplotlib inline\n')).toBe(true);
  expect(isMagicOnly('%time x = 1\nx')).toBe(false);
  expect(joinedCells(['a\n', 'b'])).toBe('a\n\n# %%\nb');
});

test('what a deletion frees is told in words', () => {
  const deletion = {
    experiment_id: 7,
    name: '',
    deleted: null,
    obstacles: [],
    pending: '',
    trials: 1,
    checkpoints: 2,
    checkpoint_bytes: 1_200_000,
    artifacts: 0,
    output_bytes: 0,
    media: 0,
    log_lines: 2694,
    blobs: 0,
    blob_bytes: 0,
    event_file_bytes: 0
  };

  expect(freedTexts(deletion)).toEqual([
    '1 trial',
    '2 checkpoints (1.2 MB)',
    '2,694 log lines'
  ]);
  expect(freedBytes(deletion)).toBe(1_200_000);
});

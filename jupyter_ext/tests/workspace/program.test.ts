import { expect, test } from 'vitest';

import {
  type BundleManifest,
  cellsText,
  fileText,
  loadProgram
} from '../../src/workspace/data/program';
import { ScriptedTransport } from '../shared/scriptedTransport';

const SHA = 'ab'.repeat(32);

function manifest(): BundleManifest {
  return {
    program: {
      kind: 'cells',
      framework: 'torch',
      prompts: true,
      command: [],
      earlier: [],
      call: { kind: 'train', cell: 1, line: 1, column: 0, occurrence: 1 },
      cells: [
        { number: 3, cell_id: null, source: 'x = 1\n', reason: 'defines x' },
        { number: null, cell_id: null, source: 'fit(x)', reason: '' }
      ]
    },
    files: [{ path: 'b.py', sha256: SHA, size: 5, mode: 420 }],
    links: [{ path: 'a.npy', sha256: SHA, size: 7, mode: 420 }],
    values: [
      {
        name: 'weights',
        codec: 'npy',
        sha256: SHA,
        size: 2000,
        before_cell: 0,
        in_place: false
      }
    ],
    interpreter: { python: '3.11.7', executable: 'python', packages: {} }
  } as unknown as BundleManifest;
}

test('a program is read as its cells, files and values', async () => {
  const transport = new ScriptedTransport({ 'master/bundles/b1': manifest() });

  const program = (await loadProgram(transport.api, {
    bundle_id: 'b1'
  }))!;

  expect(program.cells.map(({ title, hasCall }) => [title, hasCall])).toEqual([
    ['Cell [3]', false],
    ['Cell number 2', true]
  ]);
  expect(cellsText(program)).toBe('# %%\nx = 1\n\n# %%\nfit(x)\n');
  expect(program.files.map(({ path, readable }) => [path, readable])).toEqual([
    ['a.npy', false],
    ['b.py', true]
  ]);
  expect(program.sent[0]?.what).toBe('npy, 2 kB');
});

test('where no program was kept, nothing is asked for', async () => {
  const transport = new ScriptedTransport();

  expect(await loadProgram(transport.api, { bundle_id: null })).toBeNull();
  expect(transport.requests).toEqual([]);
});

test('of a file that cannot be shown it is said why', async () => {
  const file = { path: 'x', sha256: SHA, size: 3, readable: true };
  const transport = new ScriptedTransport({
    [`master/blobs/${SHA}`]: new Blob([new Uint8Array([65, 0, 66])])
  });

  expect(await fileText(transport.api, file)).toEqual({
    problem: 'It is no text (3 B).'
  });
  expect(await fileText(transport.api, { ...file, size: 1e9 })).toEqual({
    problem: 'It is larger than 262 kB (1 GB).'
  });
  expect(
    await fileText(transport.api, { ...file, readable: false })
  ).toHaveProperty('problem');
});

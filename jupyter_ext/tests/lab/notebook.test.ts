import { describe, expect, it, vi } from 'vitest';

import { documentCells } from '../../src/lab/notebook/cells';
import {
  ExecutionMemory,
  windowStore
} from '../../src/lab/notebook/executions';
import {
  checkpointCode,
  type CheckpointReference,
  importedName
} from '../../src/lab/notebook/insertion';

describe('the executions of a notebook', () => {
  it('remembers the text that was handed to the kernel, not what was typed while it ran', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    expect(memory.lastRan('a')).toBeNull();
    memory.ended('a', 'done');
    expect(memory.lastRan('a')).toBe('x = 1');
  });

  it('takes executions of the same cell in their order', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    memory.scheduled('a', 'x = 2');
    memory.ended('a', 'done');
    expect(memory.lastRan('a')).toBe('x = 1');
    memory.ended('a', 'done');
    expect(memory.lastRan('a')).toBe('x = 2');
  });

  it('does not count what was called off before it began', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'aborted');
    expect(memory.lastRan('a')).toBeNull();
    expect(memory.alive).toEqual([]);
  });

  it('counts what failed as run, but not as something that lives', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'import nothing');
    memory.ended('a', 'failed');
    expect(memory.lastRan('a')).toBe('import nothing');
    expect(memory.alive).toEqual([]);
  });

  it('still knows after a reload of the page what ran last, and not whether it lives', () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, text: string) => void kept.set(key, text)
    };
    const memory = new ExecutionMemory(windowStore(() => 'a.ipynb', storage));
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'done');
    const later = new ExecutionMemory(windowStore(() => 'a.ipynb', storage));
    expect(later.lastRan('a')).toBe('x = 1');
    expect(later.alive).toEqual([]);
    const other = new ExecutionMemory(windowStore(() => 'b.ipynb', storage));
    expect(other.lastRan('a')).toBeNull();
  });

  it('does without a store that is full, damaged or not there yet', () => {
    const full = {
      getItem: () => '{"a": 3, "b": "y"',
      setItem: () => {
        throw new Error('QuotaExceededError');
      }
    };
    const memory = new ExecutionMemory(windowStore(() => 'a.ipynb', full));
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'done');
    expect(memory.lastRan('a')).toBe('x = 1');
    const setItem = vi.fn();
    const unnamed = windowStore(() => '', { getItem: () => '{}', setItem });
    unnamed.write({ a: 'x' });
    expect(unnamed.read()).toEqual({});
    expect(setItem).not.toHaveBeenCalled();
    const odd = { getItem: () => '{"a": 3, "b": "y"}', setItem };
    expect(windowStore(() => 'a', odd).read()).toEqual({ b: 'y' });
  });

  it('knows after a restart what ran last, and that nothing of it lives', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'done');
    expect(memory.alive).toEqual(['x = 1']);
    memory.scheduled('b', 'y = 1');
    memory.kernelRestarted();
    memory.ended('b', 'done');
    expect(memory.lastRan('a')).toBe('x = 1');
    expect(memory.lastRan('b')).toBeNull();
    expect(memory.alive).toEqual([]);
  });
});

describe('the cells of the document', () => {
  const memory = new ExecutionMemory();
  memory.scheduled('a', 'x = 1');
  memory.ended('a', 'done');

  it('are the code cells from top to bottom, with tags and what last ran', () => {
    const cells = documentCells(
      {
        cells: [
          { cell_type: 'markdown', id: 'm', source: '# Title' },
          {
            cell_type: 'code',
            id: 'a',
            source: 'x = 2',
            execution_count: 3,
            metadata: { tags: ['det-skip', 7] }
          },
          { cell_type: 'raw', id: 'r', source: 'raw' },
          {
            cell_type: 'code',
            id: 'b',
            source: ['y = 1\n', 'z = 2'],
            execution_count: null
          }
        ]
      },
      memory
    );
    expect(cells).toEqual([
      {
        id: 'a',
        source: 'x = 2',
        execution_count: 3,
        executed: 'x = 1',
        tags: ['det-skip']
      },
      {
        id: 'b',
        source: 'y = 1\nz = 2',
        execution_count: null,
        executed: null,
        tags: []
      }
    ]);
  });

  it('get an id from their place where the notebook is of an older format', () => {
    const cells = documentCells(
      { cells: [{ cell_type: 'code', source: '' }] },
      memory
    );
    expect(cells[0]?.id).toBe('cell-0');
  });
});

describe('the inserted code', () => {
  const of = (
    manifest: CheckpointReference['checkpoint']['manifest']
  ): CheckpointReference => ({
    experimentId: 7,
    checkpoint: { uuid: 'ab-12', manifest }
  });
  const reference = of({ framework: 'keras', metadata: {} });

  it('imports det_native where the kernel has not done so', () => {
    expect(checkpointCode(reference)).toBe(
      'import det_native as det\n\n' +
        'checkpoint = det.attach(7).checkpoint("ab-12")\nmodel = checkpoint.load()'
    );
  });

  it('uses the name of the import that the kernel has executed', () => {
    expect(checkpointCode(reference, ['import det_native as d\nd.x'])).toBe(
      'checkpoint = d.attach(7).checkpoint("ab-12")\nmodel = checkpoint.load()'
    );
  });

  it.each([
    [{}, 'trial'],
    [{ loads: 'trial' }, 'trial'],
    [{ loads: 'model' }, 'model'],
    [{ loads: 'models' }, 'models'],
    [{ loads: '__import__("os").abort(); x' }, 'trial']
  ])('names what it loads: %j of PyTorch is a %s', (metadata, name) => {
    expect(checkpointCode(of({ framework: 'torch', metadata }))).toContain(
      `\n${name} = checkpoint.load()`
    );
  });

  it.each([
    ['import det_native', 'det_native'],
    ['import numpy as np, det_native as det', 'det'],
    ['import det_native as det  # the product', 'det'],
    ['import det_native as one\nimport det_native as other', 'other'],
    ['def f():\n    import det_native as det', null],
    ['from det_native import experimental', null],
    ['import det_native_extra as det', null],
    ['import det_native.keras', null]
  ])('finds the name in %j', (source, name) => {
    expect(importedName([source])).toBe(name);
  });
});

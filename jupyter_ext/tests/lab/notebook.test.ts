import { describe, expect, it, vi } from 'vitest';

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
    expect(memory.hasRun('a', 'x = 1')).toBe(false);
    memory.scheduled('a', 'x = 1');
    expect(memory.hasRun('a', 'x = 1')).toBe(true); // it is about to
    memory.ended('a', 'done');
    expect(memory.hasRun('a', 'x = 1')).toBe(true);
    expect(memory.hasRun('a', 'x = 2')).toBe(false);
  });

  it('takes executions of the same cell in their order', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    memory.scheduled('a', 'x = 2');
    memory.ended('a', 'done');
    expect(memory.alive).toEqual(['x = 1']);
    expect(memory.hasRun('a', 'x = 2')).toBe(true);
    memory.ended('a', 'done');
    expect(memory.alive).toEqual(['x = 2']);
  });

  it.each(['aborted', 'failed'] as const)('counts %s as not run', end => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    memory.ended('a', end);
    expect(memory.hasRun('a', 'x = 1')).toBe(false);
    expect(memory.alive).toEqual([]);
  });

  it('still knows after a reload of the page what the same kernel has run', () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, text: string) => void kept.set(key, text)
    };
    const store = (name: string) => windowStore(() => name, storage);
    const memory = new ExecutionMemory(store('a.ipynb'));
    memory.kernelIs('one');
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'done');
    const later = new ExecutionMemory(store('a.ipynb'));
    later.kernelIs('one');
    expect(later.hasRun('a', 'x = 1')).toBe(true);
    later.kernelIs('two');
    expect(later.hasRun('a', 'x = 1')).toBe(false);
    const other = new ExecutionMemory(store('b.ipynb'));
    expect(other.alive).toEqual([]);
  });

  it('does without a store that is full, damaged, of an older version or not there yet', () => {
    const full = {
      getItem: () => '{"kernel": 3, "texts"',
      setItem: () => {
        throw new Error('QuotaExceededError');
      }
    };
    const memory = new ExecutionMemory(windowStore(() => 'a.ipynb', full));
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'done');
    expect(memory.hasRun('a', 'x = 1')).toBe(true);
    const setItem = vi.fn();
    const unnamed = windowStore(() => '', { getItem: () => '{}', setItem });
    unnamed.write({ kernel: 'k', texts: { a: 'x' } });
    expect(unnamed.read()).toEqual({ kernel: '', texts: {} });
    expect(setItem).not.toHaveBeenCalled();
    for (const text of ['{"a": "y"}', 'null', '{"texts": {"a": 3}}']) {
      const odd = windowStore(() => 'a', { getItem: () => text, setItem });
      expect(odd.read()).toEqual({ kernel: '', texts: {} });
    }
  });

  it('knows after a restart that nothing lives', () => {
    const memory = new ExecutionMemory();
    memory.scheduled('a', 'x = 1');
    memory.ended('a', 'done');
    expect(memory.alive).toEqual(['x = 1']);
    memory.scheduled('b', 'y = 1');
    memory.kernelRestarted();
    memory.ended('b', 'done');
    expect(memory.hasRun('a', 'x = 1')).toBe(false);
    expect(memory.alive).toEqual([]);
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

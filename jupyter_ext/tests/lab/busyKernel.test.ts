// @vitest-environment jsdom
/** Which views are shown without their kernel: those of an experiment that goes on while a cell runs. */
import type { ServerConnection } from '@jupyterlab/services';
import { Widget } from '@lumino/widgets';
import { describe, expect, it, vi } from 'vitest';

import '../shared/browserParts';

// What Lumino's modules want of a browser when they are loaded, and jsdom has not.
vi.hoisted(() => vi.stubGlobal('DragEvent', class extends Event {}));

const listRunning = vi.hoisted(() => vi.fn());
vi.mock('@jupyterlab/services', () => ({ SessionAPI: { listRunning } }));

const { viewsOfBusyKernels } = await import('../../src/lab/output/busyKernel');

const NAMED = {
  view_id: 'one',
  experiment_id: 3,
  trial_id: 0,
  created: '2026-11-22T10:00:00Z'
};

/** An output in a notebook. */
function outputIn(path: string): Widget {
  const output = new Widget();
  const notebook = Object.assign(new Widget(), { context: { path } });
  output.parent = notebook;
  return output;
}

function find(answers: Record<string, unknown>, state: string) {
  listRunning.mockResolvedValue([
    { path: 'other.ipynb', kernel: { execution_state: 'idle' } },
    { path: 'mine.ipynb', kernel: { execution_state: state } }
  ]);
  const get = vi.fn((path: string) =>
    path in answers
      ? Promise.resolve(answers[path])
      : Promise.reject(new Error(path))
  );
  const transport = { get } as unknown as Parameters<
    typeof viewsOfBusyKernels
  >[0];
  const settings = {} as ServerConnection.ISettings;
  return { get, find: viewsOfBusyKernels(transport, settings) };
}

const GOES_ON = { state: 'RUNNING', created: NAMED.created };

describe('viewsOfBusyKernels', () => {
  it('finds an experiment and a trial that go on while a cell runs', async () => {
    const answers = {
      'master/experiments/3': GOES_ON,
      'master/trials/7': GOES_ON
    };
    const busy = find(answers, 'busy');
    const output = outputIn('mine.ipynb');
    expect(await busy.find(output, NAMED)).not.toBeNull();
    expect(await busy.find(output, { ...NAMED, trial_id: 7 })).not.toBeNull();
  });

  it('asks nothing of the master where the kernel is free, or is not there', async () => {
    const free = find({}, 'idle');
    expect(await free.find(outputIn('mine.ipynb'), NAMED)).toBeNull();
    const busy = find({}, 'busy');
    expect(await busy.find(outputIn('closed.ipynb'), NAMED)).toBeNull();
    expect(await busy.find(new Widget(), NAMED)).toBeNull();
    const unknown = { view_id: 'of a local run' };
    expect(await busy.find(outputIn('mine.ipynb'), unknown)).toBeNull();
    expect(free.get).not.toHaveBeenCalled();
    expect(busy.get).not.toHaveBeenCalled();
  });

  it('leaves what has ended, and an experiment of that number that is another, to what was saved', async () => {
    const path = 'master/experiments/3';
    for (const other of [
      { ...GOES_ON, state: 'COMPLETED' },
      { ...GOES_ON, created: '2026-11-23T10:00:00Z' }
    ]) {
      const busy = find({ [path]: other }, 'busy');
      expect(await busy.find(outputIn('mine.ipynb'), NAMED)).toBeNull();
    }
  });
});

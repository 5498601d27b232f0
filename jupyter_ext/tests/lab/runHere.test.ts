// @vitest-environment jsdom
/** Training in the kernel of the notebook: what it is told, in which order, and what a user who goes away stops. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import '../shared/browserParts';

const runCells = vi.hoisted(() => vi.fn());
vi.mock('@jupyterlab/notebook', () => ({ NotebookActions: { runCells } }));

const { runHere } = await import('../../src/lab/submission/runHere');

const HERE = {
  before: 'run_here()',
  cells: ['two'],
  after: 'run_as_written()'
};
const CELLS = ['one', 'two'].map(id => ({ model: { id } }));

/** A notebook whose kernel notes what it executes, and answers when it is told to. */
function notebook(status = 'ok') {
  const executed: string[] = [];
  const answers: Array<() => void> = [];
  const kernel = {
    requestExecute: ({ code }: { code: string }) => {
      executed.push(code);
      const content = { status, ename: 'NameError', evalue: 'no such name' };
      const done = new Promise(resolve => {
        answers.push(() => resolve({ content }));
      });
      return { done };
    }
  };
  const panel = {
    sessionContext: { ready: Promise.resolve(), session: { kernel } },
    content: { widgets: CELLS, activeCellIndex: 0, scrollToItem: vi.fn() }
  } as unknown as NotebookPanel;
  const answer = async () => {
    await vi.waitFor(() => expect(answers).not.toHaveLength(0));
    answers.shift()?.();
  };
  return { panel, executed, answer };
}

beforeEach(() => {
  runCells.mockReset();
  runCells.mockResolvedValue(true);
});

describe('training in the kernel', () => {
  it('prepares the kernel, runs the cells of the experiment, and has it as it was', async () => {
    const { panel, executed, answer } = notebook();
    const running = runHere(panel, HERE, new AbortController().signal);
    await answer();
    await running;
    expect(runCells.mock.calls[0]?.[1]).toEqual([CELLS[1]]);
    expect(panel.content.activeCellIndex).toBe(1);
    await answer();
    expect(executed).toEqual([HERE.before, HERE.after]);
  });

  it('runs no cell for a user who has gone away while the kernel was busy', async () => {
    const { panel, executed, answer } = notebook();
    const gone = new AbortController();
    const running = runHere(panel, HERE, gone.signal);
    await vi.waitFor(() => expect(executed).toEqual([HERE.before]));
    gone.abort();
    // Before anything that is run by hand meanwhile.
    expect(executed).toEqual([HERE.before, HERE.after]);
    await answer();
    await expect(running).rejects.toThrow('abort');
    expect(runCells).not.toHaveBeenCalled();
  });

  it('does not undo what was begun, when the dialog has closed', async () => {
    const { panel, executed, answer } = notebook();
    const gone = new AbortController();
    const running = runHere(panel, HERE, gone.signal);
    await answer();
    await running;
    gone.abort();
    expect(executed.filter(code => code === HERE.before)).toHaveLength(1);
    expect(executed.filter(code => code === HERE.after)).toHaveLength(1);
  });

  it('tells the kernel nothing after that', async () => {
    const { panel, executed } = notebook();
    const gone = AbortSignal.abort();
    await expect(runHere(panel, HERE, gone)).rejects.toThrow('abort');
    expect(executed).toEqual([]);
  });

  it('says to close the dialog where there is no kernel', async () => {
    const { panel } = notebook();
    Object.assign(panel.sessionContext, { session: null });
    const running = runHere(panel, HERE, new AbortController().signal);
    await expect(running).rejects.toMatchObject({
      message: 'The notebook has no kernel.',
      remedy: expect.stringContaining('Close this dialog') as string
    });
    expect(runCells).not.toHaveBeenCalled();
  });

  it.each([
    ['error', 'NameError: no such name'],
    ['aborted', 'a cell that ran before has failed']
  ])('says why the kernel could not be prepared: %s', async (status, words) => {
    const { panel, answer } = notebook(status);
    const running = runHere(panel, HERE, new AbortController().signal);
    await answer();
    await expect(running).rejects.toThrow(words);
    expect(runCells).not.toHaveBeenCalled();
  });
});

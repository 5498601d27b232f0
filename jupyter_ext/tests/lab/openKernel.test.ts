// @vitest-environment jsdom
/** What is run in a kernel that is open: from the first cell that it has not run as it stands. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import { beforeEach, expect, it, vi } from 'vitest';

import '../shared/browserParts';
import { ExecutionMemory } from '../../src/lab/notebook/executions';
import type { ExecutionTracker } from '../../src/lab/notebook/tracking';

const runCells = vi.hoisted(() => vi.fn());
vi.mock('@jupyterlab/notebook', () => ({ NotebookActions: { runCells } }));

const { firstToRun, runRest } =
  await import('../../src/lab/submission/openKernel');

beforeEach(() => {
  runCells.mockReset();
  runCells.mockResolvedValue(true);
});

/** A notebook of code cells, of which a kernel has run some. */
function notebook(sources: string[], ran: string[], kernel: unknown = LIVE) {
  const memory = new ExecutionMemory();
  memory.kernelIs('k');
  ran.forEach((source, index) => {
    memory.scheduled(`c${index}`, source);
    memory.ended(`c${index}`, 'done');
  });
  const widgets = [
    cell('markdown', 'm', '# Title'),
    ...sources.map((source, index) => cell('code', `c${index}`, source))
  ];
  const panel = {
    sessionContext: { session: { kernel } },
    content: {
      widgets,
      model: {},
      activeCellIndex: 0,
      scrollToItem: () => Promise.resolve()
    }
  } as unknown as NotebookPanel;
  const executions = {
    memoryOf: () => memory
  } as unknown as ExecutionTracker;
  return { panel, executions };
}

const LIVE = { id: 'k', status: 'idle' };

function cell(type: string, id: string, source: string) {
  return { model: { type, id, sharedModel: { getSource: () => source } } };
}

it.each([
  [['a', 'b', 'c'], [], 1],
  [['a', 'b', 'c'], ['a', 'x', 'c'], 2],
  [['a', '', 'c'], ['a'], 2],
  [['a', 'b'], ['a', 'b'], 0]
])('of %j, %j have run: begins with %d', (sources, ran, first) => {
  const { panel, executions } = notebook(sources, ran);
  expect(firstToRun(panel, executions)).toBe(first);
});

it.each([null, { id: 'k', status: 'dead' }])('is not there with %j', kernel => {
  const { panel, executions } = notebook(['a'], [], kernel);
  expect(firstToRun(panel, executions)).toBeNull();
});

it('takes nothing of another kernel for run', () => {
  const other = { id: 'other', status: 'idle' };
  const { panel, executions } = notebook(['a', 'b'], ['a', 'b'], other);
  expect(firstToRun(panel, executions)).toBe(1);
});

it('runs the cells from there on, and brings the first into sight', () => {
  const { panel, executions } = notebook(['a', 'b', 'c'], ['a']);
  runRest(panel, executions);
  expect(runCells.mock.calls[0]?.[1]).toEqual(panel.content.widgets.slice(2));
  expect(panel.content.activeCellIndex).toBe(2);
});

it('says so where there is nothing to run', () => {
  const { panel, executions } = notebook(['a'], ['a']);
  expect(() => runRest(panel, executions)).toThrow('nothing to run');
});

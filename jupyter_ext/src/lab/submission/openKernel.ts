/** Runs, in the kernel of a notebook that is open, the cells from the first that it has not run as it stands. */
import type { ISessionContextDialogs } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import { NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';

import type { ExecutionTracker } from '../notebook/tracking';

/** The code cells of a notebook that are not empty. */
export function codeCells({ content }: NotebookPanel): Cell[] {
  return content.widgets.filter(
    ({ model }) =>
      model.type === 'code' && model.sharedModel.getSource().trim() !== ''
  );
}

/** The first code cell that the open kernel has not run as it stands, from 1; 0: it has run all; null: none is open. */
export function firstToRun(
  panel: NotebookPanel,
  executions: ExecutionTracker
): number | null {
  const kernel = panel.sessionContext.session?.kernel;
  const { model } = panel.content;
  if (!kernel || kernel.status === 'dead' || model === null) {
    return null;
  }
  const memory = executions.memoryOf(model);
  memory.kernelIs(kernel.id);
  const first = codeCells(panel).findIndex(
    cell => !memory.hasRun(cell.model.id, cell.model.sharedModel.getSource())
  );
  return first + 1;
}

/** Run them, as a user does; returns when they are under way: what they do is seen in the notebook. */
export function runRest(
  panel: NotebookPanel,
  executions: ExecutionTracker,
  dialogs?: ISessionContextDialogs
): void {
  const first = firstToRun(panel, executions);
  const cells = first ? codeCells(panel).slice(first - 1) : [];
  const { content } = panel;
  if (cells[0] === undefined) {
    throw new Error('There is nothing to run in the open kernel.');
  }
  content.activeCellIndex = content.widgets.indexOf(cells[0]);
  void content.scrollToItem(content.activeCellIndex, 'smart');
  void NotebookActions.runCells(
    content,
    cells,
    panel.sessionContext,
    dialogs
  ).catch((error: unknown) =>
    console.warn('det_native: the kernel ended while it ran cells', error)
  );
}

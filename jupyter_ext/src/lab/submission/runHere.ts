/** Trains a notebook's experiment in the notebook's own kernel. */
import type { ISessionContextDialogs } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import { NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

import type { Inspection } from './inspection';
import { LastingError } from './refusals';

/**
 * Make the kernel train locally, and run the cells of the experiment as a user does.
 *
 * Resolves when the cells are under way; what they do is seen in the notebook. A kernel that is busy hears of it when it
 * is free: if the user has gone away by then (`gone`), no cell is run.
 */
export async function runHere(
  panel: NotebookPanel,
  here: Inspection['here'],
  gone: AbortSignal,
  dialogs?: ISessionContextDialogs
): Promise<void> {
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel) {
    throw new LastingError(
      'The notebook has no kernel.',
      'Close this dialog, choose a kernel at the right of the toolbar of the notebook, and press Submit again.'
    );
  }
  await prepare(kernel, here, gone);
  const wanted = new Set(here.cells);
  const cells = panel.content.widgets.filter((cell: Cell) =>
    wanted.has(cell.model.id)
  );
  showLast(panel, cells);
  void NotebookActions.runCells(
    panel.content,
    cells,
    panel.sessionContext,
    dialogs
  )
    .then(() => execute(kernel, here.after))
    .catch((error: unknown) =>
      console.warn('det_native: the kernel ended while it trained', error)
    );
}

/** Have the kernel train here from now on; for a user who goes away meanwhile, as it is written again. */
async function prepare(
  kernel: Kernel.IKernelConnection,
  here: Inspection['here'],
  gone: AbortSignal
): Promise<void> {
  gone.throwIfAborted();
  // At once, so that it stands before whatever is run by hand after the dialog, or prepared by another one.
  const undo = () => void execute(kernel, here.after).catch(() => undefined);
  gone.addEventListener('abort', undo);
  try {
    await execute(kernel, here.before);
  } finally {
    gone.removeEventListener('abort', undo);
  }
  gone.throwIfAborted();
}

/** Bring the cell that trains into sight: what it tells is shown below it. */
function showLast({ content }: NotebookPanel, cells: readonly Cell[]): void {
  const last = cells.at(-1);
  if (last !== undefined) {
    content.activeCellIndex = content.widgets.indexOf(last);
    void content.scrollToItem(content.activeCellIndex, 'smart');
  }
}

async function execute(
  kernel: Kernel.IKernelConnection,
  code: string
): Promise<void> {
  const { content } = await kernel.requestExecute({
    code,
    silent: true,
    store_history: false
  }).done;
  if (content.status === 'ok') {
    return;
  }
  const { ename, evalue } = content as KernelMessage.IReplyErrorContent;
  // What waits behind a cell that fails is left out by the kernel.
  const why =
    content.status === 'error'
      ? `${ename}: ${evalue}`
      : 'a cell that ran before has failed. Press Run here again.';
  throw new Error(`The kernel could not be prepared: ${why}`);
}

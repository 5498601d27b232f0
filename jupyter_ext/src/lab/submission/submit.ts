/** Submits the notebook that a panel shows, as the front end has it. */
import {
  type ISessionContextDialogs,
  Notification
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import type { Transport } from '../../shared/transport';
import { documentCells, type NotebookJSON } from '../notebook/cells';
import type { ExecutionTracker } from '../notebook/tracking';
import { type Outcome, SubmitController } from './controller';
import { SubmitDialog } from './dialog';
import type { DocumentBody } from './inspection';
import { runHere } from './runHere';

/** What submitting needs. */
export interface SubmitContext {
  transport: Transport;
  executions: ExecutionTracker;
  contents: Contents.IManager;
  /** Name of the kernelspec for a notebook that names none. */
  defaultKernelspec: () => string;
  dialogs?: ISessionContextDialogs;
  onOpen: (experimentId: number) => void;
}

/** Ask in a dialog and submit; resolves when the dialog is closed. */
export async function submitNotebook(
  panel: NotebookPanel,
  context: SubmitContext
): Promise<void> {
  await panel.context.ready;
  const title = `Submit ${PathExt.basename(panel.context.path)}`;
  const controller = new SubmitController({
    transport: context.transport,
    document: documentOf(panel, context),
    newKey: () => UUID.uuid4(),
    onModel: model => dialog.showModel(model),
    runHere: (here, gone) => runHere(panel, here, gone, context.dialogs)
  });
  const ended: { outcome: Outcome | null } = { outcome: null };
  const accept = async () => {
    ended.outcome = await controller.submit();
    if (ended.outcome !== null) {
      dialog.finish();
    }
  };
  const dialog = new SubmitDialog(
    title,
    event => controller.take(event),
    () => void accept()
  );
  const closed = dialog.launch();
  void controller.begin();
  await closed;
  controller.abort();
  if (ended.outcome !== null) {
    announce(ended.outcome, context.onOpen);
  }
}

function announce(
  outcome: Outcome,
  onOpen: (experimentId: number) => void
): void {
  if (outcome.kind === 'here') {
    Notification.info('Training in the kernel of the notebook', {
      autoClose: 4000
    });
    return;
  }
  const { id, name } = outcome.experiment;
  Notification.success(`Submitted experiment ${id}: ${name}`, {
    autoClose: 8000
  });
  onOpen(id);
}

function documentOf(
  panel: NotebookPanel,
  context: SubmitContext
): Pick<DocumentBody, 'path' | 'kernelspec' | 'cells'> {
  const { model } = panel.content;
  if (model === null) {
    throw new Error('The notebook is not loaded yet.');
  }
  return {
    path: context.contents.localPath(panel.context.path),
    kernelspec: kernelspecOf(panel) ?? context.defaultKernelspec(),
    cells: documentCells(
      model.toJSON() as unknown as NotebookJSON,
      context.executions.memoryOf(model)
    )
  };
}

/** The kernelspec that runs the notebook, or that it names. */
function kernelspecOf(panel: NotebookPanel): string | null {
  const running = panel.sessionContext.session?.kernel?.name;
  const written = panel.content.model?.getMetadata('kernelspec') as
    { name?: string } | undefined;
  return (
    running ||
    panel.sessionContext.kernelPreference.name ||
    written?.name ||
    null
  );
}

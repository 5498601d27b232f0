/** Submits the notebook that a panel shows. */
import {
  type ISessionContextDialogs,
  Notification
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents, KernelSpec } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import type { Transport } from '../../shared/transport';
import type { ExecutionTracker } from '../notebook/tracking';
import { type Outcome, SubmitController } from './controller';
import { SubmitDialog } from './dialog';
import { codeCells, firstToRun, runRest } from './openKernel';

/** Papermill's tag for the cell whose values a run may change. */
const PARAMETERS = 'parameters';

/** What submitting needs. */
export interface SubmitContext {
  transport: Transport;
  executions: ExecutionTracker;
  contents: Contents.IManager;
  kernelspecs: () => KernelSpec.ISpecModels | null;
  dialogs?: ISessionContextDialogs;
  /** A run has begun. */
  onRun: () => void;
}

/** Ask in a dialog and submit; resolves when the dialog is closed. */
export async function submitNotebook(
  panel: NotebookPanel,
  context: SubmitContext
): Promise<void> {
  await panel.context.ready;
  const { executions } = context;
  const specs = context.kernelspecs();
  const name = PathExt.basename(panel.context.path);
  const kernel = kernelspecOf(panel) ?? specs?.default ?? 'python3';
  const cells = codeCells(panel);
  const controller = new SubmitController({
    transport: context.transport,
    facts: {
      name,
      kernel: specs?.kernelspecs[kernel]?.display_name ?? kernel,
      cells: cells.length,
      first: firstToRun(panel, executions)
    },
    notebook: { path: context.contents.localPath(panel.context.path), kernel },
    parameters:
      cells
        .find(({ model }) => tagsOf(model).includes(PARAMETERS))
        ?.model.sharedModel.getSource() ?? '',
    newKey: () => UUID.uuid4(),
    onModel: model => dialog.showModel(model),
    save: async () => {
      if (panel.context.model.dirty) {
        await panel.context.save();
      }
    },
    runInKernel: () =>
      Promise.resolve(runRest(panel, executions, context.dialogs))
  });
  const ended: { outcome: Outcome | null } = { outcome: null };
  const accept = async () => {
    ended.outcome = await controller.submit();
    if (ended.outcome !== null) {
      dialog.finish();
    }
  };
  const dialog = new SubmitDialog(
    `Submit ${name}`,
    event => controller.take(event),
    () => void accept()
  );
  const closed = dialog.launch();
  void controller.begin();
  await closed;
  controller.abort();
  if (ended.outcome?.kind === 'run') {
    const { id } = ended.outcome.run;
    const text = `Run ${id} of ${name} has begun: the panel of experiments shows how it goes.`;
    Notification.success(text, { autoClose: 6000 });
    context.onRun();
  }
}

function tagsOf(model: { getMetadata(key: string): unknown }): unknown[] {
  const tags = model.getMetadata('tags');
  return Array.isArray(tags) ? tags : [];
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

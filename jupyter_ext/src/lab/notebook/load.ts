/** "Load into notebook": a cell that loads a checkpoint, in the notebook in front or in a new one. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { insertCodeCell } from './insert';
import { checkpointCode, type CheckpointReference } from './insertion';
import type { ExecutionTracker } from './tracking';

/** Inserts cells that load checkpoints. */
export class CheckpointLoader {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _notebooks: INotebookTracker,
    private readonly _executions: ExecutionTracker
  ) {}

  /** Insert the cell below the active one of the notebook used last; without a notebook, offer a new one. */
  async load(reference: CheckpointReference): Promise<void> {
    const panel =
      this._notebooks.currentWidget ?? (await this._offerNotebook());
    if (panel === null) {
      return;
    }
    await panel.context.ready;
    const { model } = panel.content;
    const executed =
      model === null ? [] : this._executions.memoryOf(model).alive;
    this._app.shell.activateById(panel.id);
    insertCodeCell(panel, checkpointCode(reference, executed));
  }

  private async _offerNotebook(): Promise<NotebookPanel | null> {
    const { button } = await showDialog({
      title: 'No notebook is open',
      body: 'The cell that loads the checkpoint goes into a notebook. Open a new one?',
      buttons: [
        Dialog.cancelButton(),
        Dialog.okButton({ label: 'New notebook' })
      ]
    });
    if (!button.accept) {
      return null;
    }
    await this._app.serviceManager.kernelspecs.ready;
    const kernelName = this._app.serviceManager.kernelspecs.specs?.default;
    const panel = (await this._app.commands.execute('notebook:create-new', {
      kernelName
    })) as NotebookPanel;
    await panel.revealed;
    return panel;
  }
}

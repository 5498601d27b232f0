/** "Load into notebook": a cell that loads a checkpoint, in the notebook in front or in a new one. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { KernelSpec } from '@jupyterlab/services';

import { insertCodeCell } from './insert';
import { checkpointCode, type CheckpointReference } from './insertion';
import { isPython, languageOf, pythonKernel } from './language';
import type { ExecutionTracker } from './tracking';

/** Inserts cells that load checkpoints. */
export class CheckpointLoader {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _notebooks: INotebookTracker,
    private readonly _executions: ExecutionTracker
  ) {}

  /** Insert the cell below the active one of the notebook used last; without one for Python, offer a new one. */
  async load(reference: CheckpointReference): Promise<void> {
    const panel = await this._notebook();
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

  private async _notebook(): Promise<NotebookPanel | null> {
    const panel = this._notebooks.currentWidget;
    if (panel === null) {
      return this._offerNotebook('No notebook is open');
    }
    await panel.context.ready;
    const language = languageOf(panel, await this._specs());
    return isPython(language)
      ? panel
      : this._offerNotebook(`The notebook in front is for ${language}`);
  }

  private async _specs(): Promise<KernelSpec.ISpecModels | null> {
    const { kernelspecs } = this._app.serviceManager;
    await kernelspecs.ready;
    return kernelspecs.specs;
  }

  private async _offerNotebook(title: string): Promise<NotebookPanel | null> {
    const { button } = await showDialog({
      title,
      body: 'The cell that loads the checkpoint goes into a notebook for Python. Open a new one?',
      buttons: [
        Dialog.cancelButton(),
        Dialog.okButton({ label: 'New notebook' })
      ]
    });
    if (!button.accept) {
      return null;
    }
    const kernelName = pythonKernel(await this._specs());
    const panel = (await this._app.commands.execute('notebook:create-new', {
      kernelName
    })) as NotebookPanel;
    await panel.revealed;
    return panel;
  }
}

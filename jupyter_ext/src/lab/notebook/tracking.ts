/** Watches the notebooks of this page, to know what the kernel of each has run. */
import type { ISessionContext } from '@jupyterlab/apputils';
import {
  type INotebookModel,
  type INotebookTracker,
  type Notebook,
  NotebookActions,
  type NotebookPanel
} from '@jupyterlab/notebook';
import type { Cell } from '@jupyterlab/cells';
import type { Kernel } from '@jupyterlab/services';

import { type ExecutionEnd, ExecutionMemory, windowStore } from './executions';

interface Ended {
  notebook: Notebook;
  cell: Cell;
  success: boolean;
  error?: { errorName?: string } | null;
}

/** One memory for each notebook, shared by all its views. */
export class ExecutionTracker {
  private readonly _memories = new WeakMap<INotebookModel, ExecutionMemory>();

  constructor(private readonly _notebooks: INotebookTracker) {
    NotebookActions.executionScheduled.connect((_, started) =>
      this._scheduled(started)
    );
    NotebookActions.executed.connect((_, ended) => this._ended(ended));
    _notebooks.widgetAdded.connect((_, panel) => this._watchKernel(panel));
    _notebooks.forEach(panel => this._watchKernel(panel));
  }

  /** What the kernel of a notebook has run, as far as this window has seen it. */
  memoryOf(model: INotebookModel): ExecutionMemory {
    let memory = this._memories.get(model);
    if (memory === undefined) {
      memory = new ExecutionMemory(windowStore(() => this._pathOf(model)));
      this._memories.set(model, memory);
    }
    return memory;
  }

  private _pathOf(model: INotebookModel): string {
    const panel = this._notebooks.find(each => each.model === model);
    return panel?.context.path ?? '';
  }

  private _scheduled({
    notebook,
    cell
  }: Pick<Ended, 'notebook' | 'cell'>): void {
    if (notebook.model !== null && cell.model.type === 'code') {
      this.memoryOf(notebook.model).scheduled(
        cell.model.id,
        cell.model.sharedModel.getSource()
      );
    }
  }

  private _ended(ended: Ended): void {
    const { notebook, cell } = ended;
    if (notebook.model !== null && cell.model.type === 'code') {
      this.memoryOf(notebook.model).ended(cell.model.id, endOf(ended));
    }
  }

  private _watchKernel(panel: NotebookPanel): void {
    const forget = () => {
      if (panel.model !== null) {
        this.memoryOf(panel.model).kernelRestarted();
      }
    };
    panel.sessionContext.kernelChanged.connect((_, { newValue }) => {
      if (panel.model !== null && newValue !== null) {
        this.memoryOf(panel.model).kernelIs(newValue.id);
      }
    });
    panel.sessionContext.statusChanged.connect(
      (_: ISessionContext, status: Kernel.Status) => {
        if (
          status === 'restarting' ||
          status === 'autorestarting' ||
          status === 'dead'
        ) {
          forget();
        }
      }
    );
  }
}

/** A cell that was called off because one before it failed has an error without a name. */
function endOf({ success, error }: Ended): ExecutionEnd {
  if (success) {
    return 'done';
  }
  return error?.errorName ? 'failed' : 'aborted';
}

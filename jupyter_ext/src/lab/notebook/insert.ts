/** Inserts a cell into a notebook, below the active one. */
import { NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';

/** Insert a code cell below the active one, show it and put the keyboard into it; an empty active cell is used itself. */
export function insertCodeCell(panel: NotebookPanel, code: string): void {
  const notebook = panel.content;
  const active = notebook.activeCell;
  const isEmpty =
    active?.model.type === 'code' &&
    active.model.sharedModel.getSource().trim() === '';
  if (!isEmpty) {
    NotebookActions.insertBelow(notebook);
  }
  const cell = notebook.activeCell;
  if (cell === null) {
    return;
  }
  cell.model.sharedModel.setSource(code);
  void notebook.scrollToItem(notebook.activeCellIndex, 'smart');
  notebook.activate();
}

/** What JupyterLab's windowed list asks about the rows of ours: how many, how high, and what shows them. */
import { WindowedListModel } from '@jupyterlab/ui-components';
import type { Widget } from '@lumino/widgets';

import type { Row } from './rows';

/** Heights of a row in CSS pixels; the style sheet has the same. */
export const ROW_HEIGHT = 48;
export const LINE_HEIGHT = 18;

/** How many rows more are drawn on either side of those that are seen. */
const SPARE_ROWS = 4;

/** The rows as a windowed list takes them. All heights are known, so nothing has to be measured. */
export class ExperimentListModel extends WindowedListModel {
  private _rows: readonly Row[] = [];

  /**
   * @param _widgetOf - Gives the widget that shows a row at its place, counted from 0.
   */
  constructor(private readonly _widgetOf: (row: Row, index: number) => Widget) {
    super({ overscanCount: SPARE_ROWS });
  }

  override estimateWidgetSize = (index: number) => heightOf(this._rows[index]!);

  override widgetRenderer = (index: number) =>
    this._widgetOf(this._rows[index]!, index);

  get rows(): readonly Row[] {
    return this._rows;
  }

  set rows(rows: readonly Row[]) {
    this._rows = rows;
    if (rows.length > 0) {
      this.setWidgetSize(
        rows.map((row, index) => ({ index, size: heightOf(row) }))
      );
    }
    this.widgetCount = rows.length;
    this.resetAfterIndex(rows.length - 1); // a longer list from before is forgotten
  }
}

function heightOf(row: Row): number {
  const lines = [row.changes, row.problem].filter(text => text !== '').length;
  return ROW_HEIGHT + lines * LINE_HEIGHT;
}

/** A table whose rows are kept while their items change: focus and selection survive an update. */

import { make, setText } from './dom';
import { RowHighlight } from './rowHighlight';

export interface Column<T> {
  readonly title: string;
  readonly text: (item: T) => string;
  /** Shown when pointed at, where the text is cut. */
  readonly tip?: (item: T) => string;
  readonly numeric?: boolean;
  /** Kind of colour of the entry, such as that of a state. */
  readonly tone?: (item: T) => string;
}

export interface TableOptions<T> {
  readonly label: string;
  readonly key: (item: T) => string;
  readonly columns: ReadonlyArray<Column<T>>;
  /** Element at the end of each row, such as a button. */
  readonly action?: (item: T) => HTMLElement | null;
  readonly emphasised?: (item: T) => boolean;
  /** Lets one point at rows and hold one: told its key, null when it is none any more. */
  readonly onHighlight?: (key: string | null) => void;
}

interface Row {
  readonly root: HTMLTableRowElement;
  readonly cells: readonly HTMLElement[];
}

export class KeyedTable<T> {
  readonly root: HTMLElement;
  private readonly _body = make('tbody');
  private readonly _rows = new Map<string, Row>();
  private readonly _highlight: RowHighlight | null = null;

  constructor(private readonly _options: TableOptions<T>) {
    const head = make('tr');
    for (const column of _options.columns) {
      head.append(
        make(
          'th',
          column.numeric ? 'det-numeric' : '',
          { scope: 'col' },
          column.title
        )
      );
    }
    if (_options.action) {
      head.append(make('th', '', { 'aria-label': 'Action' }));
    }
    const table = make('table', 'det-table', { 'aria-label': _options.label });
    const { onHighlight } = _options;
    if (onHighlight) {
      table.setAttribute('role', 'grid');
      this._highlight = new RowHighlight(this._body, row =>
        onHighlight(row?.dataset.key ?? null)
      );
    }
    table.append(make('thead', '', {}, head), this._body);
    this.root = make(
      'div',
      'det-scroll',
      { tabindex: '0', role: 'region' },
      table
    );
    this.root.setAttribute('aria-label', _options.label);
  }

  /** Show these items, in this order. */
  setItems(items: readonly T[]): void {
    const keys = new Set(items.map(this._options.key));
    for (const [key, row] of this._rows) {
      if (!keys.has(key)) {
        row.root.remove();
        this._rows.delete(key);
        this._highlight?.remove(row.root);
      }
    }
    items.forEach((item, index) => this._place(item, index));
  }

  private _place(item: T, index: number): void {
    const key = this._options.key(item);
    let row = this._rows.get(key);
    if (!row) {
      row = this._make(item);
      row.root.dataset.key = key;
      this._highlight?.add(row.root);
      this._rows.set(key, row);
    }
    if (this._body.children[index] !== row.root) {
      this._body.insertBefore(row.root, this._body.children[index] ?? null);
    }
    this._fill(row, item);
  }

  private _make(item: T): Row {
    const cells = this._options.columns.map(column =>
      make('td', column.numeric ? 'det-numeric' : '')
    );
    const root = make('tr', '', {}, ...cells);
    if (this._options.action) {
      root.append(make('td', 'det-action', {}, this._options.action(item)));
    }
    return { root, cells };
  }

  private _fill(row: Row, item: T): void {
    row.root.classList.toggle(
      'det-emphasised',
      this._options.emphasised?.(item) ?? false
    );
    this._options.columns.forEach((column, index) => {
      const cell = row.cells[index];
      if (cell) {
        setText(cell, column.text(item));
        cell.title = column.tip?.(item) ?? '';
        if (column.tone) {
          cell.dataset.tone = column.tone(item);
        }
      }
    });
  }
}

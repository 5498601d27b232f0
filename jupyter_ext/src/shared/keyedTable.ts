/** A table whose rows are kept while their items change: focus and selection survive an update. */

import { button, make, setText } from './dom';
import { RowHighlight } from './rowHighlight';

export interface Column<T> {
  readonly title: string;
  readonly text: (item: T) => string;
  /** What rows are sorted by where that is not the text: nothing comes last. */
  readonly value?: (item: T) => number | null;
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
  /** Lets one point at rows and hold one: told the keys of both, null when it is none any more. */
  readonly onHighlight?: (held: string | null, pointed: string | null) => void;
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
  private readonly _heads: HTMLElement[] = [];
  private _items: readonly T[] = [];
  /** The column that rows are sorted by, from 0; -1 for the order in which they are given. */
  private _sorted = -1;
  private _descending = false;

  constructor(private readonly _options: TableOptions<T>) {
    const head = make('tr');
    _options.columns.forEach((column, index) => {
      this._heads.push(
        make(
          'th',
          column.numeric ? 'det-numeric' : '',
          { scope: 'col' },
          button('det-sort', column.title, () => this._sortBy(index))
        )
      );
    });
    head.append(...this._heads);
    if (_options.action) {
      head.append(make('th', '', { 'aria-label': 'Action' }));
    }
    const table = make('table', 'det-table', { 'aria-label': _options.label });
    const { onHighlight } = _options;
    if (onHighlight) {
      table.setAttribute('role', 'grid');
      this._highlight = new RowHighlight(this._body, (held, pointed) =>
        onHighlight(held?.dataset.key ?? null, pointed?.dataset.key ?? null)
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

  /** Name a column anew. */
  setTitle(column: number, title: string): void {
    setText(this._heads[column]!.firstElementChild!, title);
  }

  /** Sorted by a column, then the other way round, then as they are given. */
  private _sortBy(column: number): void {
    const again = column === this._sorted;
    this._sorted = again && this._descending ? -1 : column;
    this._descending = again && !this._descending;
    this._heads.forEach((head, index) =>
      index === this._sorted
        ? (head.ariaSort = this._descending ? 'descending' : 'ascending')
        : head.removeAttribute('aria-sort')
    );
    this._show();
  }

  /** Show these items, in this order as long as the user wants no other. */
  setItems(items: readonly T[]): void {
    this._items = items;
    this._show();
  }

  private _show(): void {
    const items = this._inOrder();
    const keys = new Set(items.map(this._options.key));
    for (const [key, row] of this._rows) {
      if (!keys.has(key)) {
        row.root.remove();
        this._rows.delete(key);
        this._highlight?.remove(row.root);
      }
    }
    const { activeElement } = document;
    items.forEach((item, index) => this._place(item, index));
    // A row that is moved loses the focus.
    if (
      activeElement !== document.activeElement &&
      this._body.contains(activeElement)
    ) {
      (activeElement as HTMLElement).focus({ preventScroll: true });
    }
  }

  private _inOrder(): readonly T[] {
    const column = this._options.columns[this._sorted];
    if (!column) {
      return this._items;
    }
    const { value, text } = column;
    const sign = this._descending ? -1 : 1;
    return this._items.toSorted((one, other) => {
      const [left, right] = [value?.(one), value?.(other)];
      return value
        ? +(left === null) - +(right === null) || sign * (left! - right!)
        : sign *
            text(one).localeCompare(text(other), undefined, { numeric: true });
    });
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

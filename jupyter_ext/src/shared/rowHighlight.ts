/** Rows that one points at or walks through by arrow keys, to see what they stand for; a press holds one. */

export class RowHighlight {
  private _pointed: HTMLElement | null = null;
  private _held: HTMLElement | null = null;
  /** The one row that Tab stops at. */
  private _stop: HTMLElement | null = null;
  private _reported: ReadonlyArray<HTMLElement | null> = [null, null];

  /** `tell` is called with the row that is held and the one that is pointed at, null where it is none any more. */
  constructor(
    private readonly _body: HTMLElement,
    private readonly _tell: (
      held: HTMLElement | null,
      pointed: HTMLElement | null
    ) => void
  ) {
    _body.addEventListener('pointerover', event => this._point(rowOf(event)));
    _body.addEventListener('pointerleave', () => this._point(null));
    _body.addEventListener('focusin', event => this._focused(rowOf(event)));
    _body.addEventListener('focusout', () => this._point(null));
    _body.addEventListener('click', event => {
      // Text that is selected in a row, to be copied, is no press of it.
      if (getSelection()?.isCollapsed !== false) {
        this._press(rowOf(event));
      }
    });
    _body.addEventListener('keydown', event => this._key(event));
  }

  add(row: HTMLElement): void {
    row.tabIndex = -1;
    setSelected(row, false);
    if (!this._stop) {
      this._stopAt(row);
    }
  }

  remove(row: HTMLElement): void {
    this._pointed = this._pointed === row ? null : this._pointed;
    this._held = this._held === row ? null : this._held;
    if (this._stop === row) {
      this._stop = null;
      this._stopAt(this._body.querySelector('tr'));
    }
    this._show();
  }

  private _stopAt(row: HTMLElement | null): void {
    if (this._stop) {
      this._stop.tabIndex = -1;
    }
    this._stop = row;
    if (row) {
      row.tabIndex = 0;
    }
  }

  private _point(row: HTMLElement | null): void {
    this._pointed = row;
    this._show();
  }

  private _focused(row: HTMLElement | null): void {
    this._stopAt(row);
    // A row that was clicked has the focus as well, and keeps it when the pointer leaves.
    if (row?.matches(':focus-visible')) {
      this._point(row);
    }
  }

  private _press(row: HTMLElement | null): void {
    const before = this._held;
    this._held = row === before ? null : row;
    if (before) {
      setSelected(before, false);
    }
    if (this._held) {
      setSelected(this._held, true);
    }
    this._show();
  }

  private _key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) {
      return; // of the notebook, as Shift+Enter
    }
    const row = rowOf(event);
    const places: Readonly<Record<string, Element | null | undefined>> = {
      ArrowDown: row?.nextElementSibling,
      ArrowUp: row?.previousElementSibling,
      Home: this._body.firstElementChild,
      End: this._body.lastElementChild
    };
    if (event.key === 'Enter' || event.key === ' ') {
      this._press(row);
    } else if (event.key in places) {
      (places[event.key] as HTMLElement | null | undefined)?.focus();
    } else {
      return;
    }
    // Neither the page nor JupyterLab's notebook shall move.
    event.preventDefault();
    event.stopPropagation();
  }

  private _show(): void {
    const [held, pointed] = this._reported;
    if (held !== this._held || pointed !== this._pointed) {
      this._reported = [this._held, this._pointed];
      this._tell(this._held, this._pointed);
    }
  }
}

function rowOf({ target }: Event): HTMLElement | null {
  return (target as Element).closest('tr');
}

function setSelected(row: HTMLElement, selected: boolean): void {
  row.setAttribute('aria-selected', String(selected));
}

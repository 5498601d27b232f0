/** A list of experiments that draws only the rows that are seen, and is used by mouse, keyboard and screen reader. */
import { offsetsOf, rowAfterKey, scrollTo, visibleRows } from './window';
import { RowView } from './rowView';
import type { Row } from './rows';

/** Heights of a row in CSS pixels; the style sheet has the same. */
export const ROW_HEIGHT = 48;
export const PROBLEM_HEIGHT = 18;

/** What a list calls when an experiment is to be opened. */
export interface ListOptions {
  label: string;
  onOpen: (experimentId: number) => void;
}

/** The list; `element` goes into the page. */
export class ExperimentList {
  private _rows: readonly Row[] = [];
  private _offsets: number[] = [0];
  private _activeRow = 0;
  private readonly _canvas = document.createElement('div');
  private readonly _views = new Map<number, RowView>();
  private readonly _resize: ResizeObserver;

  constructor(private readonly _options: ListOptions) {
    this.element.className = 'det-List';
    this.element.tabIndex = 0;
    this.element.setAttribute('role', 'listbox');
    this.element.setAttribute('aria-label', _options.label);
    this._canvas.className = 'det-List-canvas';
    this._canvas.setAttribute('role', 'presentation');
    this.element.append(this._canvas);
    this.element.addEventListener('scroll', () => this._draw(), {
      passive: true
    });
    this.element.addEventListener('keydown', event => this._pressed(event));
    this.element.addEventListener('click', event => this._clicked(event));
    this.element.addEventListener('contextmenu', event => this._pointed(event));
    this._resize = new ResizeObserver(() => this._draw());
    this._resize.observe(this.element);
  }

  /** The element to put into the page. */
  readonly element = document.createElement('div');

  /** Experiment of the active row; null in an empty list. */
  get activeId(): number | null {
    return this._rows[this._activeRow]?.id ?? null;
  }

  /** Show these rows; the active experiment stays active, wherever it has moved. */
  setRows(rows: readonly Row[]): void {
    const active = this.activeId;
    this._rows = rows;
    this._offsets = offsetsOf(
      rows.map(row => ROW_HEIGHT + (row.problem === '' ? 0 : PROBLEM_HEIGHT))
    );
    this._activeRow = Math.max(
      0,
      rows.findIndex(row => row.id === active)
    );
    this._canvas.style.height = `${this._offsets[rows.length]}px`;
    this._draw();
  }

  /** Put the keyboard here. */
  focus(): void {
    this.element.focus();
  }

  /** End all observation. */
  dispose(): void {
    this._resize.disconnect();
  }

  private _draw(): void {
    const { first, end } = visibleRows(
      this._offsets,
      this.element.scrollTop,
      this.element.clientHeight
    );
    const seen = new Set<number>();
    for (let index = first; index < end; index++) {
      const row = this._rows[index]!;
      seen.add(row.id);
      let view = this._views.get(row.id);
      if (view === undefined) {
        view = new RowView(row.id);
        this._views.set(row.id, view);
      }
      const place = this._canvas.children[index - first];
      if (place !== view.element) {
        this._canvas.insertBefore(view.element, place ?? null); // screen readers go by the order in the DOM
      }
      view.show(row, {
        top: this._offsets[index]!,
        position: index + 1,
        count: this._rows.length
      });
      view.setActive(index === this._activeRow);
    }
    this._forgetAllBut(seen);
    this._nameActive();
  }

  private _forgetAllBut(seen: ReadonlySet<number>): void {
    for (const [id, view] of this._views) {
      if (!seen.has(id)) {
        view.element.remove();
        this._views.delete(id);
      }
    }
  }

  private _nameActive(): void {
    const view =
      this.activeId === null ? undefined : this._views.get(this.activeId);
    if (view === undefined) {
      this.element.removeAttribute('aria-activedescendant');
    } else {
      this.element.setAttribute('aria-activedescendant', view.element.id);
    }
  }

  private _activate(row: number): void {
    this._activeRow = row;
    this.element.scrollTop = scrollTo(
      this._offsets,
      row,
      this.element.scrollTop,
      this.element.clientHeight
    );
    this._draw();
  }

  private _pressed(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this._openActive();
      return;
    }
    const page = Math.max(
      1,
      Math.floor(this.element.clientHeight / ROW_HEIGHT) - 1
    );
    const row = rowAfterKey(
      event.key,
      this._activeRow,
      this._rows.length,
      page
    );
    if (row !== null) {
      event.preventDefault();
      this._activate(row);
    }
  }

  private _clicked(event: MouseEvent): void {
    if (this._activateAt(event.target)) {
      this._openActive();
    }
  }

  private _pointed(event: MouseEvent): void {
    this._activateAt(event.target);
  }

  private _activateAt(target: EventTarget | null): boolean {
    const element =
      target instanceof Element
        ? target.closest<HTMLElement>('.det-Row')
        : null;
    const row = this._rows.findIndex(
      each => String(each.id) === element?.dataset.experimentId
    );
    if (row < 0) {
      return false;
    }
    this._activate(row);
    return true;
  }

  private _openActive(): void {
    if (this.activeId !== null) {
      this._options.onOpen(this.activeId);
    }
  }
}

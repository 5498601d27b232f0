/** A list of experiments that draws only the rows that are seen, and is used by mouse, keyboard and screen reader. */
import { WindowedList } from '@jupyterlab/ui-components';
import { type Message, MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { ExperimentId } from '../../shared/model';
import { rowAfterKey } from './keys';
import { ExperimentListModel, ROW_HEIGHT } from './listModel';
import { RowView } from './rowView';
import type { Row } from './rows';

/** What a list calls when an experiment is to be opened. */
export interface ListOptions {
  label: string;
  onOpen: (experimentId: ExperimentId) => void;
}

/** The list. */
export class ExperimentList extends WindowedList<ExperimentListModel> {
  private _activeRow = 0;
  private readonly _rowWidgets = new Map<ExperimentId, RowWidget>();
  private readonly _resize = new ResizeObserver(() => this._resized());

  constructor(private readonly _options: ListOptions) {
    super({
      model: new ExperimentListModel((row, index) => this._draw(row, index)),
      renderer: new ListRenderer()
    });
    const list = this.element;
    list.setAttribute('aria-label', _options.label);
    list.firstElementChild?.setAttribute('role', 'presentation');
    list.addEventListener('keydown', event => this._pressed(event));
    list.addEventListener('click', event => this._clicked(event));
    list.addEventListener('contextmenu', event => this._pointed(event));
    this._resize.observe(list);
  }

  /** What scrolls, and takes the keyboard. */
  get element(): HTMLElement {
    return this.outerNode;
  }

  /** Experiment of the active row; null in an empty list. */
  get activeId(): ExperimentId | null {
    return this.viewModel.rows[this._activeRow]?.id ?? null;
  }

  /** Show these rows; the active experiment stays active, wherever it has moved. */
  setRows(rows: readonly Row[]): void {
    const active = this.activeId;
    this._activeRow = Math.max(
      0,
      rows.findIndex(row => row.id === active)
    );
    this.viewModel.rows = rows;
    this._forgetAllBut(new Set(rows.map(row => row.id)));
    this._markActive();
    this.update();
  }

  /** Put the keyboard here. */
  focus(): void {
    this.element.focus();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._resize.disconnect();
      this._forgetAllBut(new Set());
      this.viewModel.dispose();
    }
    super.dispose();
  }

  private _draw(row: Row, index: number): RowWidget {
    let widget = this._rowWidgets.get(row.id);
    if (widget === undefined) {
      widget = new RowWidget(row.id, () => this._markActive());
      this._rowWidgets.set(row.id, widget);
    }
    widget.view.show(row, {
      position: index + 1,
      count: this.viewModel.rows.length
    });
    widget.view.setActive(row.id === this.activeId);
    return widget;
  }

  private _forgetAllBut(ids: ReadonlySet<ExperimentId>): void {
    for (const [id, widget] of this._rowWidgets) {
      if (!ids.has(id)) {
        this._rowWidgets.delete(id);
        widget.dispose();
      }
    }
  }

  /** Mark the active row, and say which it is while it is drawn. */
  private _markActive(): void {
    const active = this.activeId;
    for (const [id, widget] of this._rowWidgets) {
      widget.view.setActive(id === active);
    }
    const widget = active === null ? undefined : this._rowWidgets.get(active);
    if (widget?.isAttached) {
      this.element.setAttribute('aria-activedescendant', widget.id);
    } else {
      this.element.removeAttribute('aria-activedescendant');
    }
  }

  private _activate(row: number): void {
    this._activeRow = row;
    this._markActive();
    // Not `scrollToItem`: that scrolls back to the row for seconds, whatever the user does.
    const { element: list, viewModel: model } = this;
    model.scrollOffset = list.scrollTop;
    list.scrollTop = model.getOffsetForIndexAndAlignment(row);
    model.scrollOffset = list.scrollTop;
    this.update();
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
      this.viewModel.rows.length,
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
    const row = this.viewModel.rows.findIndex(
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

  private _resized(): void {
    MessageLoop.sendMessage(this, Widget.ResizeMessage.UnknownSize);
  }
}

/** Makes the parts of a windowed list that are a list for screen readers too. */
class ListRenderer extends WindowedList.Renderer {
  override createOuter(): HTMLElement {
    const outer = super.createOuter();
    outer.className = 'det-List';
    outer.tabIndex = 0;
    outer.setAttribute('role', 'listbox');
    return outer;
  }

  override createViewport(): HTMLElement {
    const viewport = super.createViewport();
    viewport.setAttribute('role', 'presentation');
    return viewport;
  }
}

/** A row as a widget; tells when it comes into the page, and when it leaves it. */
class RowWidget extends Widget {
  readonly view: RowView;

  constructor(
    experimentId: ExperimentId,
    private readonly _onMoved: () => void
  ) {
    const view = new RowView(experimentId);
    super({ node: view.element });
    this.view = view;
  }

  protected override onAfterAttach(_: Message): void {
    this._onMoved();
  }

  protected override onAfterDetach(_: Message): void {
    this._onMoved();
  }
}

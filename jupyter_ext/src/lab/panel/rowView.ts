/** One row of the list of experiments, as DOM; names and errors are text, never HTML. */
import { make, plainText, setName, setText } from '../../shared/dom';
import type { ExperimentId } from '../../shared/model';
import { type Shape, stateIcons } from '../icons';
import type { Row } from './rows';

/** Where a row stands. */
interface Place {
  /** Counted from 1. */
  position: number;
  count: number;
}

/** A row; made once for an experiment and then only changed where something changed. */
export class RowView {
  private _shown: Row | null = null;
  private readonly _icon = part('span', 'det-Row-icon');
  private readonly _number = part('span', 'det-Row-number');
  private readonly _name = part('span', 'det-Row-name');
  private readonly _metric = part('span', 'det-Row-metric');
  private readonly _state = part('span', 'det-Row-state');
  private readonly _metricName = part('span', 'det-Row-metricName');
  private readonly _changes = part('div', 'det-Row-changes');
  private readonly _problem = part('div', 'det-Row-problem');
  private readonly _bar = part('div', 'det-Row-bar det-bar');
  private readonly _barFill = part('div', 'det-bar-fill');

  constructor(experimentId: ExperimentId) {
    this.element.className = 'det-Row';
    this.element.id = `det-row-${experimentId}`;
    this.element.dataset.experimentId = String(experimentId);
    this.element.setAttribute('role', 'option');
    const first = part(
      'div',
      'det-Row-line',
      this._number,
      this._name,
      this._metric
    );
    const second = part(
      'div',
      'det-Row-line det-Row-second',
      this._state,
      this._metricName
    );
    const main = part(
      'div',
      'det-Row-main',
      first,
      this._changes,
      second,
      this._problem
    );
    this._bar.append(this._barFill);
    this.element.append(this._icon, main, this._bar);
    this._icon.setAttribute('aria-hidden', 'true');
    this._bar.setAttribute('aria-hidden', 'true');
  }

  readonly element = document.createElement('div');

  /** Show a row at its place. */
  show(row: Row, place: Place): void {
    set(this.element, 'aria-posinset', String(place.position));
    set(this.element, 'aria-setsize', String(place.count));
    if (row === this._shown) {
      return;
    }
    this._shown = row;
    set(this.element, 'aria-label', row.label);
    set(this.element, 'title', row.title);
    this._showShape(row.shape);
    setText(this._number, row.number);
    setName(this._name, row.name);
    setText(this._metric, row.metric);
    setText(this._state, row.detail);
    setText(this._metricName, row.metricName);
    setText(this._changes, row.changes);
    this._changes.hidden = row.changes === '';
    setText(this._problem, plainText(row.problem));
    this._problem.hidden = row.problem === '';
    this._bar.hidden = row.progress === null;
    this._bar.dataset.tone = row.shape === 'running' ? 'active' : 'waiting';
    this._barFill.style.width = `${Math.round((row.progress ?? 0) * 1000) / 10}%`;
  }

  /** Mark the row as the one that the keyboard is on. */
  setActive(active: boolean): void {
    set(this.element, 'aria-selected', String(active));
  }

  private _showShape(shape: Shape): void {
    if (this.element.dataset.shape !== shape) {
      this.element.dataset.shape = shape;
      this._icon.replaceChildren(stateIcons[shape].element({ tag: 'span' }));
    }
  }
}

function part(
  tag: 'div' | 'span',
  className: string,
  ...children: Node[]
): HTMLElement {
  return make(tag, className, {}, ...children);
}

function set(element: HTMLElement, attribute: string, value: string): void {
  if (element.getAttribute(attribute) !== value) {
    element.setAttribute(attribute, value);
  }
}

/** The line of the cursor over a plot, and a mark on each curve. */

import type uPlot from 'uplot';

import { hitsAt } from './hover';
import type { PlotState } from './curvePlot';
import { colourOf } from './looks';
import { groupOf } from './series';

const MOST_MARKS = 60;

export class Overlay {
  readonly root = element('det-curve-overlay');
  private readonly _line = element('det-curve-cursor');
  private readonly _marks: HTMLElement[] = [];

  constructor() {
    this._line.hidden = true;
    this.root.setAttribute('aria-hidden', 'true');
    this.root.append(this._line);
  }

  /** Show the cursor at a place of the x axis, or nowhere. */
  show(
    plot: uPlot,
    { drawn, x, y, palette }: PlotState,
    at: number | null,
    highlighted: string | null
  ): void {
    const inside = at !== null && at >= x[0] && at <= x[1];
    this._line.hidden = !inside;
    const hits = inside ? hitsAt(drawn, at, reachOf(x), x) : [];
    const shown = hits
      .filter(
        ({ drawn: { series, look }, value }) =>
          look.colour >= 0 &&
          value >= y[0] &&
          value <= y[1] &&
          (highlighted === null || highlighted === groupOf(series))
      )
      .slice(0, MOST_MARKS);
    if (inside) {
      move(this._line, plot.valToPos(at, 'x'), 0);
    }
    shown.forEach((hit, index) => {
      const mark = (this._marks[index] ??= this._newMark());
      mark.hidden = false;
      mark.style.background = colourOf(hit.drawn.look.colour, palette);
      move(mark, plot.valToPos(hit.x, 'x'), plot.valToPos(hit.value, 'y'));
    });
    for (const mark of this._marks.slice(shown.length)) {
      mark.hidden = true;
    }
  }

  private _newMark(): HTMLElement {
    const mark = element('det-curve-mark');
    this.root.append(mark);
    return mark;
  }
}

/** How far beyond its ends a series still counts as being at the cursor. */
export function reachOf([from, to]: readonly [number, number]): number {
  return (to - from) / 50;
}

function element(name: string): HTMLElement {
  const made = document.createElement('div');
  made.className = name;
  return made;
}

function move(moved: HTMLElement, left: number, top: number): void {
  moved.style.transform = `translate(${left.toFixed(1)}px, ${top.toFixed(1)}px)`;
}

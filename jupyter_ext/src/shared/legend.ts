/** The legend of a chart: what each line is, and its value under the cursor. */

import { make, setText } from './dom';
import { formatValue } from './format';
import type { LineStyle } from './palette';

const MOST_ENTRIES = 8;

export class Legend {
  readonly root = make('div', 'det-legend');
  private readonly _batch = make('span', 'det-legend-batch');
  private readonly _values: HTMLElement[] = [];

  /**
   * Show an entry for each line that stands for itself; the rest is counted. With `keepHeight`, what is below stays at
   * its place: a row there that the pointer is on would go from under it.
   */
  setLines(styles: readonly LineStyle[], keepHeight = false): void {
    this._values.length = 0;
    const { style } = this.root;
    const height = this.root.getBoundingClientRect().height;
    if (!keepHeight) {
      style.minHeight = '';
    } else if (height > 0) {
      style.minHeight = `${height}px`;
    }
    const shown = styles
      .filter(style => !style.background)
      .slice(0, MOST_ENTRIES);
    const entries = shown.map(style => this._entry(style));
    const more = styles.length - shown.length;
    const words = `${more} more ${more === 1 ? 'curve' : 'curves'}`;
    const rest = more > 0 ? [make('span', 'det-legend-entry', {}, words)] : [];
    this.root.classList.toggle(
      'det-crowded',
      styles.some(each => each.background)
    );
    this.root.replaceChildren(...entries, ...rest, this._batch);
  }

  /** Show values, in the order of the lines that have an entry. */
  setValues(batch: number | null, values: ReadonlyArray<number | null>): void {
    setText(
      this._batch,
      batch === null ? '' : `batch ${batch.toLocaleString('en')}`
    );
    this._values.forEach((element, index) =>
      setText(element, formatValue(values[index] ?? null))
    );
  }

  private _entry(style: LineStyle): HTMLElement {
    const swatch = make(
      'span',
      `det-swatch${style.dashed ? ' det-dashed' : ''}`,
      {
        'aria-hidden': 'true'
      }
    );
    swatch.style.borderTopColor = style.colour;
    const value = make('b');
    this._values.push(value);
    return make(
      'span',
      'det-legend-entry',
      {},
      swatch,
      style.label,
      ' ',
      value
    );
  }
}

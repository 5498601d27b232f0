/** What was logged under one name, with a slider over its batches. It stays where it was put, or at the newest. */

import { make, setName, setText } from './dom';
import { drawMoment } from './mediaBodies';
import type { MediaContents } from './mediaContents';
import type { MediaSeries } from './outputs';
import { momentAt, momentText } from './outputs';

/** While the slider moves, nothing is fetched for what it only passes. */
const SETTLED_MILLISECONDS = 80;
/** What could not be fetched is tried again after so long, while it is seen. */
const RETRY_MILLISECONDS = 5000;
/** What is so near to be seen is fetched. */
const MARGIN = '200px';

export class MediaCard {
  readonly root = make('figure', 'det-medium');
  private readonly _name = make('span', 'det-medium-name');
  private readonly _when = make('span', 'det-legend-batch');
  private readonly _slider = make('input', 'det-slider', {
    type: 'range',
    // Else the arrow keys fold headings of the notebook.
    'data-lm-suppress-shortcuts': 'true'
  });
  private readonly _body = make('div', 'det-media-body');
  private readonly _problem = make('p', 'det-empty', { role: 'status' });
  private readonly _observer: IntersectionObserver;
  private _series: MediaSeries | null = null;
  /** The batch at which the slider was left; null at the newest, where new ones come. */
  private _batch: number | null = null;
  private _index = 0;
  private _seen = false;
  private _drawn = '';
  private _wanted = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly _contents: MediaContents) {
    this._slider.min = '0';
    this._slider.step = '1';
    const title = make(
      'figcaption',
      'det-chart-title',
      {},
      this._name,
      this._when
    );
    this.root.append(title, this._body, this._problem, this._slider);
    this._slider.addEventListener('input', () => this._moved());
    this._observer = new IntersectionObserver(
      entries => {
        this._seen = entries.at(-1)?.isIntersecting ?? false;
        this._draw();
      },
      { rootMargin: MARGIN }
    );
    this._observer.observe(this.root);
  }

  update(series: MediaSeries): void {
    this._series = series;
    setName(this._name, series.name);
    this.root.setAttribute('aria-label', series.name);
    const { moments } = series;
    this._slider.hidden = moments.length < 2;
    this._slider.max = String(moments.length - 1);
    this._slider.setAttribute('aria-label', `Batch of ${series.name}`);
    this._turnTo(momentAt(moments, this._batch));
    this._draw();
  }

  /** Show what was logged at a batch, or last before it; null: the newest. */
  moveTo(batch: number | null): void {
    this._batch = batch;
    this._turnTo(momentAt(this._series?.moments ?? [], batch));
    this._drawSoon(SETTLED_MILLISECONDS);
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._observer.disconnect();
    this._wanted = '';
    this._series = null;
  }

  private _turnTo(index: number): void {
    const moments = this._series?.moments ?? [];
    this._index = index;
    this._slider.value = String(index);
    const text = momentText(moments, index);
    setText(this._when, text);
    this._slider.setAttribute('aria-valuetext', text);
  }

  private _moved(): void {
    const moments = this._series?.moments ?? [];
    const index = Number(this._slider.value);
    const isNewest = index === moments.length - 1;
    this._batch = isNewest ? null : (moments[index]?.batch ?? null);
    this._turnTo(index);
    this._drawSoon(SETTLED_MILLISECONDS);
  }

  private _drawSoon(milliseconds: number): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._draw(), milliseconds);
  }

  /** What is shown stays until what comes in its place is there. */
  private _draw(): void {
    const series = this._series;
    const moment = series?.moments[this._index];
    if (!series || !moment || !this._seen) {
      return;
    }
    const key = moment.items.map(({ id }) => id).join(' ');
    if (key === this._wanted) {
      return;
    }
    this._wanted = key;
    if (key === this._drawn) {
      this._told('');
      return;
    }
    this._body.setAttribute('aria-busy', 'true');
    drawMoment(series, this._index, this._contents).then(
      drawn => {
        if (key === this._wanted) {
          this._drawn = key;
          this._body.replaceChildren(drawn);
          this._told('');
        }
      },
      (error: unknown) => {
        if (key === this._wanted) {
          this._wanted = '';
          this._told(error instanceof Error ? error.message : String(error));
          this._drawSoon(RETRY_MILLISECONDS);
        }
      }
    );
  }

  private _told(problem: string): void {
    this._body.removeAttribute('aria-busy');
    setText(this._problem, problem);
    this._problem.hidden = problem === '';
  }
}

/** Charts of metrics, drawn by uPlot. */

import uPlot from 'uplot';

import {
  axisWidth,
  batchRange,
  flatRange,
  linearTicks,
  logarithmicTicks,
  powers,
  tickText,
  WHOLE_STEPS
} from './axes';
import { button, make, setName } from './dom';
import { formatValue } from './format';
import { Legend } from './legend';
import type { MetricCurve } from './model';
import type { LineStyle, Palette } from './palette';
import { readPalette, styleLines, watchTheme } from './palette';
import type { Line, Values } from './plotData';
import {
  align,
  asLine,
  commonBatches,
  hasNumbers,
  hasPositive,
  isolated,
  putFirst,
  putLast,
  valueAt
} from './plotData';
import { TEXTS } from './texts';

const HEIGHT = 170;
const LEAST_WIDTH = 120;
const BAND_ALPHA = '30';
/** A single peak is as narrow as a bucket: its edge shows it, its area would not. */
const EDGE_ALPHA = '70';

export interface ChartOptions {
  /** Name of the metric. */
  title: string;
  /** Charts with the same key share the cursor. */
  sync?: string;
}

/** What belongs to the curves: which trials the experiment has with curves, the best one, and one to look at. */
export interface ChartContext {
  readonly trials: readonly number[];
  readonly best: number | null;
  readonly highlighted?: number | null;
  /** One that is only pointed at: it stands out, and order and axes stay. */
  readonly pointed?: number | null;
  /** The numbers of the trials inside the experiment, by their ids. */
  readonly numbers?: ReadonlyMap<number, number>;
}

/** One metric: a line per trial, training dashed, validation solid with points, bands from minimum to maximum. */
export class Chart {
  readonly root = make('figure', 'det-chart');
  private readonly _canvas = make('div', 'det-chart-canvas', { role: 'img' });
  private readonly _nothing = make('p', 'det-empty', {}, TEXTS.noNumbers);
  private readonly _legend = new Legend();
  private readonly _log: HTMLButtonElement;
  private readonly _resize: ResizeObserver;
  private readonly _unwatchTheme: () => void;
  private _plot: uPlot | null = null;
  private _curves: readonly MetricCurve[] = [];
  private _context: ChartContext = { trials: [], best: null };
  /** In the order in which they are drawn. */
  private _lines: readonly Line[] = [];
  /** Their indices in the order in which they are told. */
  private _order: readonly number[] = [];
  private _styles: readonly LineStyle[] = [];
  /** Whether there is a band, by line. What is only pointed at does not change it: the axis would, too. */
  private _bands: readonly boolean[] = [];
  private _palette: Palette | null = null;
  private _means: Values[] = [];
  private _drawn = '';
  private _logarithmic = false;
  private _zoomed = false;
  private _frame = 0;
  private _later = 0;

  constructor(
    host: HTMLElement,
    private readonly _options: ChartOptions
  ) {
    this._log = button('det-toggle', 'log', () => this._toggleLog());
    this._log.setAttribute('aria-pressed', 'false');
    this._log.setAttribute(
      'aria-label',
      `Logarithmic scale for ${_options.title}`
    );
    const name = make('span');
    setName(name, _options.title);
    const caption = make('figcaption', 'det-chart-title', {}, name, this._log);
    // Else a figure is called all that stands in its caption, the button too.
    this.root.setAttribute('aria-label', _options.title);
    this.root.append(caption, this._nothing, this._canvas, this._legend.root);
    host.append(this.root);
    this._resize = new ResizeObserver(() => this._fit());
    this._resize.observe(this._canvas);
    this._unwatchTheme = watchTheme(document, () => this._restyle());
  }

  /** Draw these curves at the next frame. */
  setCurves(curves: readonly MetricCurve[], context?: ChartContext): void {
    const trials = [...new Set(curves.map(curve => curve.trial_id))];
    this._curves = curves;
    this._context = context ?? { trials, best: null };
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this.draw();
    });
  }

  /** Draw now. */
  draw(): void {
    const lines = this._curves.map(curve => asLine(curve, this._logarithmic));
    const { best, highlighted = null, pointed = null } = this._context;
    this._lines = putLast(lines, best, pointed ?? highlighted);
    this._order = putFirst(lines, best, highlighted).map(line =>
      this._lines.indexOf(line)
    );
    const held = this._style(highlighted);
    this._styles =
      pointed === null
        ? held
        : this._style(pointed).map((style, index) =>
            this._lines[index]?.trialId === highlighted && style.background
              ? { ...style, ...held[index]!, faded: true }
              : style
          );
    const plain = this._style(null);
    this._bands = this._lines.map(
      ({ band, trialId }, index) =>
        band !== null &&
        (plain[index]?.background !== true || trialId === highlighted)
    );
    this._nothing.hidden = hasNumbers(this._curves);
    this._log.disabled = !this._logarithmic && !hasPositive(this._curves);
    const shape = this._shape();
    const data = this._data();
    if (this._plot && shape === this._drawn) {
      this._plot.setData(data, !this._zoomed);
      if (this._zoomed) {
        this._plot.redraw();
      }
    } else {
      this._drawn = shape;
      this._build(data);
      this._legend.setLines(
        this._order.flatMap(at => this._styles[at] ?? []),
        highlighted !== null || pointed !== null
      );
    }
    this._describe();
    this._showValues();
    if (this._canvas.clientWidth === 0) {
      // Hidden, maybe for less than a frame, of which no observer is told: so JupyterLab changes its theme.
      this._later ||= requestAnimationFrame(() => {
        this._later = 0;
        this._fit();
      });
    }
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    cancelAnimationFrame(this._later);
    this._resize.disconnect();
    this._unwatchTheme();
    this._plot?.destroy();
    this._plot = null;
    this.root.remove();
  }

  private _style(highlighted: number | null): LineStyle[] {
    const { trials, best, numbers } = this._context;
    this._palette = readPalette(this.root);
    return styleLines(
      this._lines,
      trials,
      best,
      this._palette,
      highlighted,
      id => numbers?.get(id) ?? id
    );
  }

  /** What makes a new plot necessary, and not only new data. */
  private _shape(): string {
    const looks = this._lines.map((line, index) => {
      const style = this._styles[index];
      return `${line.key}:${line.band ? 'b' : ''}:${style?.label}:${style?.colour}:${style?.points}:${style?.width}:${style?.faded}`;
    });
    return `${this._logarithmic}|${this._palette?.text}|${this._order.join()}|${looks.join('|')}`;
  }

  private _data(): uPlot.AlignedData {
    const common = commonBatches(this._lines);
    const columns: Values[] = [];
    this._means = this._lines.map(line => align(common, line.batch, line.mean));
    this._lines.forEach((line, index) => {
      columns.push(this._means[index] ?? []);
      if (this._hasBand(index) && line.band) {
        columns.push(align(common, line.batch, line.band.maximum));
        columns.push(align(common, line.batch, line.band.minimum));
      }
    });
    return [common, ...columns];
  }

  private _hasBand(index: number): boolean {
    return this._bands[index] === true;
  }

  private _build(data: uPlot.AlignedData): void {
    const zoom = this._zoomed ? this._plot?.scales.x : undefined;
    this._plot?.destroy();
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    this._lines.forEach((_, index) => {
      const style = this._styles[index];
      if (!style) {
        return;
      }
      series.push(lineSeries(style));
      if (this._hasBand(index)) {
        series.push(edgeSeries(style), edgeSeries(style));
        if (!style.faded) {
          const fill = style.colour + BAND_ALPHA;
          bands.push({ series: [series.length - 2, series.length - 1], fill });
        }
      }
    });
    this._plot = new uPlot(
      { ...this._plotOptions(), series, bands },
      data,
      this._canvas
    );
    if (typeof zoom?.min === 'number' && typeof zoom.max === 'number') {
      this._plot.setScale('x', { min: zoom.min, max: zoom.max });
    }
  }

  private _plotOptions(): Omit<uPlot.Options, 'series'> {
    const axis: uPlot.Axis = {
      stroke: this._palette?.text,
      grid: { stroke: this._palette?.grid, width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
      gap: 4
    };
    return {
      width: this._width(),
      height: HEIGHT,
      legend: { show: false },
      padding: [6, 16, 0, 0], // on the right, half of the last number on the axis
      scales: {
        x: {
          time: false,
          range: (plot, min, max) => batchRange(plot.data[0], min, max)
        },
        y: {
          distr: this._logarithmic ? 3 : 1,
          range: (_, min, max) => this._valueRange(min, max)
        }
      },
      axes: [
        {
          ...axis,
          size: 22,
          label: 'batch',
          labelSize: 14,
          labelGap: -2,
          labelFont: axis.font,
          incrs: WHOLE_STEPS,
          values: (_, ticks, __, ___, step) =>
            ticks.map(tick => tickText(tick, step))
        },
        {
          ...axis,
          size: axisWidth,
          ...(this._logarithmic
            ? { grid: { ...axis.grid, filter: (_, ticks) => powers(ticks) } }
            : {}),
          incrs: () => [Infinity], // uPlot is to look for no step
          splits: (_, __, min, max) =>
            (this._logarithmic ? logarithmicTicks : linearTicks)(min, max),
          values: (_, ticks) => {
            const [first = 0, second = first] = ticks;
            const step = this._logarithmic ? 0 : second - first;
            return ticks.map(tick => tickText(tick, step));
          }
        }
      ],
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: true, y: false, uni: 20 },
        ...(this._options.sync
          ? { sync: { key: this._options.sync, scales: ['x', null] } }
          : {})
      },
      hooks: {
        setCursor: [() => this._showValues()],
        setSelect: [plot => (this._zoomed ||= plot.select.width > 0)],
        ready: [
          plot =>
            plot.over.addEventListener('dblclick', () => (this._zoomed = false))
        ]
      }
    };
  }

  private _valueRange(min: number | null, max: number): uPlot.Range.MinMax {
    if (min === null) {
      return [null, null];
    }
    return (
      flatRange(min, max, this._logarithmic) ??
      (this._logarithmic
        ? uPlot.rangeLog(min, max, 10, false)
        : uPlot.rangeNum(min, max, 0.1, true))
    );
  }

  private _width(): number {
    return Math.max(Math.floor(this._canvas.clientWidth), LEAST_WIDTH);
  }

  private _fit(): void {
    if (
      this._plot &&
      this._canvas.clientWidth > 0 &&
      this._plot.width !== this._width()
    ) {
      this._plot.setSize({ width: this._width(), height: HEIGHT });
    }
  }

  private _restyle(): void {
    if (this._plot) {
      this.draw();
    }
  }

  private _toggleLog(): void {
    this._logarithmic = !this._logarithmic;
    this._log.setAttribute('aria-pressed', String(this._logarithmic));
    this.draw();
  }

  private _showValues(): void {
    const plot = this._plot;
    if (!plot) {
      return;
    }
    const batches = plot.data[0];
    const under = plot.cursor.idx ?? null;
    const at = under ?? batches.length - 1;
    const shown = this._order.filter(index => !this._styles[index]?.background);
    const batch = batches[at] ?? null;
    this._legend.setValues(
      under === null ? null : batch,
      shown.map(index =>
        under === null
          ? this._last(index)
          : valueAt(this._means[index] ?? [], at)
      )
    );
  }

  /** The newest value of a line, as bars and logs say it. */
  private _last(index: number): number | null {
    const values = this._means[index] ?? [];
    return this._lines[index]?.last ?? valueAt(values, values.length - 1);
  }

  private _describe(): void {
    const words = this._order.slice(0, 4).map(index => {
      return `${this._styles[index]?.label} ${formatValue(this._last(index))}`;
    });
    const described = this._nothing.hidden
      ? `last values: ${words.join('; ')}`
      : TEXTS.noNumbers;
    this._canvas.setAttribute(
      'aria-label',
      `${this._options.title} over batches; ${described}`
    );
  }
}

function lineSeries(style: LineStyle): uPlot.Series {
  const { colour } = style;
  return {
    stroke: colour,
    width: style.width,
    alpha: style.faded ? 0.35 : style.dashed ? 0.8 : 1,
    points: {
      show: style.points,
      size: 5,
      fill: colour,
      stroke: colour,
      ...(style.points
        ? {}
        : { filter: (plot, index) => isolated(plot.data[index] ?? []) })
    },
    ...(style.dashed ? { dash: [6, 3] } : {})
  };
}

function edgeSeries({ colour, faded }: LineStyle): uPlot.Series {
  const stroke = faded ? 'transparent' : colour + EDGE_ALPHA;
  return { stroke, width: 1, points: { show: false } };
}

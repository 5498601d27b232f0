/** A chart of curves on the screen: uPlot, kept for as long as the chart lives. */

import uPlot from 'uplot';

import { type Palette, readPalette, watchTheme } from '../../shared/palette';
import { align, type Aligned, type ColumnInfo } from './aligned';
import { axisLabel, colourOf } from './looks';
import { Overlay } from './overlay';
import { bandsOf, lineOf, RAW_ALPHA, shapeOf } from './plotLines';
import { type Drawn, prepare, xRange, yRange } from './prepare';
import { type CurveChartProps, groupOf, usedAxis } from './series';
import type { Axis, Zoom } from './series';
import type { ChartSync, Shared } from './sync';
import { type Tick, xTicks, xTitle, yTicks } from './ticks';

const LEAST_WIDTH = 160;
const DEFAULT_HEIGHT = 220;
/** Room for one number on the x axis, in pixels. */
const X_ROOM = 74;
const FONT = '11px system-ui, sans-serif';
/** How much of a line is seen while another stands out. */
const FADED = 0.18;
const LEAST_DRAG = 4;

/** What is drawn now, for all that is beside the plot. */
export interface PlotState {
  readonly axis: Axis;
  readonly drawn: readonly Drawn[];
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
  readonly palette: Palette;
}

/** Draws into an element until it is disposed of. */
export class CurvePlot {
  private readonly _resize: ResizeObserver;
  private readonly _unwatchTheme: () => void;
  private readonly _overlay = new Overlay();
  private _unsubscribe: () => void = () => undefined;
  private _sync: ChartSync | null = null;
  private _plot: uPlot | null = null;
  private _props: CurveChartProps | null = null;
  private _aligned: Aligned | null = null;
  private _state: PlotState | null = null;
  private _shape = '';
  /** Read again with each change of the theme: to work it out takes longer than all else. */
  private _palette: Palette | null = null;
  private _zoom: Zoom = null;
  private _highlighted: string | null = null;
  private _frame = 0;
  private _pointed: number | null = null;

  /** @param _shown - Told of all that is drawn, whenever that has changed. */
  constructor(
    private readonly _host: HTMLElement,
    private readonly _shown: (state: PlotState) => void,
    private readonly _entered: (inside: boolean) => void
  ) {
    this._resize = new ResizeObserver(() => this._fit());
    this._resize.observe(_host);
    this._unwatchTheme = watchTheme(document, () => {
      this._palette = null;
      this.update();
    });
  }

  get state(): PlotState | null {
    return this._state;
  }

  /** Draw with what has changed; a zoom and the cursor stay. */
  update(props: CurveChartProps | null = this._props): void {
    if (props === null) {
      return;
    }
    this._props = props;
    this._listen(props.sync ?? this._sync);
    const { settings, series } = props;
    const axis = usedAxis(series, settings.axis);
    const drawn = prepare(series, axis, settings);
    const palette = (this._palette ??= readPalette(this._host));
    this._aligned = align(drawn);
    this._setState(axis, drawn, palette);
    const shape = shapeOf(this._aligned.columns, axis, props, palette);
    if (this._plot !== null && shape === this._shape) {
      this._resizePlot();
      const plot = this._plot;
      const { data } = this._aligned;
      plot.batch(() => plot.setData(data, true));
    } else {
      this._shape = shape;
      this._build();
    }
    this._showCursor();
  }

  /** Pixels from the left of the chart to a place of the x axis, and how wide the chart is. */
  placeOf(x: number): { left: number; width: number } {
    const plot = this._plot;
    return plot === null
      ? { left: 0, width: 0 }
      : {
          left: plot.valToPos(x, 'x') + plot.over.offsetLeft,
          width: this._width()
        };
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._unsubscribe();
    this._resize.disconnect();
    this._unwatchTheme();
    this._overlay.root.remove();
    this._plot?.destroy();
    this._plot = null;
  }

  private _listen(sync: ChartSync | null): void {
    if (sync === this._sync) {
      return;
    }
    this._unsubscribe();
    this._sync = sync;
    if (sync !== null) {
      this._zoom = sync.shared.zoom;
      this._highlighted = sync.shared.highlighted;
      this._unsubscribe = sync.subscribe(shared => this._follow(shared));
    }
  }

  private _follow({ zoom, highlighted }: Shared): void {
    if (zoom !== this._zoom) {
      this._zoom = zoom;
      const { axis, drawn, palette } = this._state ?? {};
      if (axis && drawn && palette) {
        this._setState(axis, drawn, palette);
      }
      this._rescale();
    }
    if (highlighted !== this._highlighted) {
      this._highlighted = highlighted;
      this._styleLines();
      this._plot?.redraw(false);
    }
    this._showCursor();
  }

  private _setState(
    axis: Axis,
    drawn: readonly Drawn[],
    palette: Palette
  ): void {
    const { settings, least } = this._props!;
    const x = xRange(drawn, this._zoom, settings.logX);
    const y = yRange(drawn, x, settings, least);
    this._state = { axis, drawn, palette, x, y };
    this._shown(this._state);
  }

  /** Both axes as the state says. */
  private _rescale(): void {
    if (this._plot !== null && this._state !== null) {
      const [min, max] = this._state.x;
      // At once, and not when the browser comes to it: marks are put where the scales are.
      const plot = this._plot;
      plot.batch(() => plot.setScale('x', { min, max }));
    }
  }

  private _build(): void {
    const aligned = this._aligned!;
    this._plot?.destroy();
    const plot = new uPlot(
      this._options(aligned.columns),
      aligned.data,
      this._host
    );
    this._plot = plot;
    plot.over.append(this._overlay.root);
    plot.over.addEventListener('mouseenter', () => this._entered(true));
    plot.over.addEventListener('mouseleave', () => {
      this._entered(false);
      this._point(null);
    });
    plot.over.addEventListener('dblclick', () =>
      this._sync?.set({ zoom: null })
    );
    this._styleLines();
  }

  private _options(columns: readonly ColumnInfo[]): uPlot.Options {
    const { palette } = this._state!;
    const { settings, height = DEFAULT_HEIGHT } = this._props!;
    const axis: uPlot.Axis = {
      stroke: palette.text,
      grid: { stroke: palette.grid, width: 1 },
      ticks: { show: false },
      font: FONT,
      labelFont: FONT,
      gap: 4,
      incrs: () => [Infinity] // uPlot is to look for no step
    };
    const range = (ends: (state: PlotState) => readonly [number, number]) =>
      ((): uPlot.Range.MinMax => {
        const [from, to] = ends(this._state!);
        return [from, to];
      }) as uPlot.Scale.Range;
    const texts = (ticks: readonly Tick[]) => ({
      splits: ticks.map(({ at }) => at),
      values: ticks.map(({ text }) => text)
    });
    return {
      width: this._width(),
      height,
      legend: { show: false },
      padding: [8, 20, 0, 0], // on the right, half of the last number
      scales: {
        x: {
          time: false,
          distr: settings.logX ? 3 : 1,
          range: range(({ x }) => x)
        },
        y: { distr: settings.logY ? 3 : 1, range: range(({ y }) => y) }
      },
      axes: [
        {
          ...axis,
          size: 20,
          label: xTitle(this._state!.axis, this._state!.x),
          labelSize: 15,
          labelGap: -2,
          splits: () => texts(this._xTicks()).splits,
          values: () => texts(this._xTicks()).values
        },
        {
          ...axis,
          size: (_, values) =>
            Math.max(
              30,
              12 +
                6.4 * Math.max(0, ...(values ?? []).map(value => value.length))
            ),
          label: axisLabel(this._props!.unit ?? this._props!.title),
          labelSize: 15,
          labelGap: 0,
          splits: () => texts(this._yTicks()).splits,
          values: () => texts(this._yTicks()).values
        }
      ],
      series: [{}, ...columns.map(info => lineOf(info, palette))],
      bands: bandsOf(columns, palette),
      cursor: {
        x: false,
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: LEAST_DRAG },
        bind: { dblclick: () => null }
      },
      hooks: {
        setCursor: [plot => this._moved(plot)],
        setSelect: [plot => this._selected(plot)],
        draw: [plot => this._drawBeyond(plot)]
      }
    };
  }

  private _xTicks(): Tick[] {
    const { axis, x } = this._state!;
    const room = Math.max(2, Math.floor((this._width() - 60) / X_ROOM));
    return xTicks(axis, x, room, this._props!.settings.logX);
  }

  private _yTicks(): Tick[] {
    return yTicks(
      this._state!.y,
      this._props!.settings.logY,
      this._props!.format
    );
  }

  private _styleLines(): void {
    this._aligned?.columns.forEach(({ drawn, part }, index) => {
      const line = this._plot?.series[index + 1];
      if (line) {
        const faded =
          this._highlighted !== null &&
          this._highlighted !== groupOf(drawn.series);
        const alpha = part === 'raw' ? RAW_ALPHA : drawn.look.alpha;
        line.alpha = faded ? Math.min(alpha, FADED) : alpha;
      }
    });
  }

  private _moved(plot: uPlot): void {
    const { left = -1 } = plot.cursor;
    if (left >= 0) {
      this._point(plot.posToVal(left, 'x'));
    }
  }

  /** At most once in each frame, and only of what the pointer itself does. */
  private _point(at: number | null): void {
    this._pointed = at;
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this._sync?.set({ cursor: this._pointed });
    });
  }

  private _selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < LEAST_DRAG) {
      return;
    }
    const zoom: Zoom = [
      plot.posToVal(left, 'x'),
      plot.posToVal(left + width, 'x')
    ];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this._sync?.set({ zoom });
  }

  private _showCursor(): void {
    if (this._plot !== null && this._state !== null) {
      this._overlay.show(
        this._plot,
        this._state,
        this._sync?.shared.cursor ?? null,
        this._highlighted
      );
    }
  }

  /** Triangles at the edge, where a value is infinite. */
  private _drawBeyond(plot: uPlot): void {
    const { drawn, palette, x } = this._state!;
    const { ctx, bbox } = plot;
    const size = 5 * devicePixelRatio;
    for (const { infinities, look } of drawn) {
      ctx.fillStyle = colourOf(look.colour, palette);
      for (const { x: at, positive } of infinities) {
        if (at >= x[0] && at <= x[1]) {
          const left = plot.valToPos(at, 'x', true);
          const [tip, base] = positive
            ? [bbox.top, bbox.top + size * 1.6]
            : [bbox.top + bbox.height, bbox.top + bbox.height - size * 1.6];
          ctx.beginPath();
          ctx.moveTo(left, tip);
          ctx.lineTo(left - size, base);
          ctx.lineTo(left + size, base);
          ctx.fill();
        }
      }
    }
  }

  private _width(): number {
    return Math.max(Math.floor(this._host.clientWidth), LEAST_WIDTH);
  }

  private _fit(): void {
    if (this._host.clientWidth > 0) {
      this._resizePlot();
    }
  }

  private _resizePlot(): void {
    const height = this._props?.height ?? DEFAULT_HEIGHT;
    const plot = this._plot;
    if (plot && (plot.width !== this._width() || plot.height !== height)) {
      plot.setSize({ width: this._width(), height });
      this._showCursor();
    }
  }
}

/** What a chart of curves is given: series, settings, and how a board of charts is put together. Pure. */

import type { MetricCurve } from '../../shared/model';
import type { ChartSync } from './sync';

/** What an x axis counts. `relative` is the time since the first report of each series, `time` the time of day. */
export type Axis = 'batch' | 'epoch' | 'samples' | 'time' | 'relative';

export const AXES: readonly Axis[] = [
  'batch',
  'epoch',
  'samples',
  'time',
  'relative'
];

/** Names of the axes, as they stand under a chart and in a chooser. */
export const AXIS_NAMES: Readonly<Record<Axis, string>> = {
  batch: 'Batch',
  epoch: 'Epoch',
  samples: 'Samples',
  time: 'Wall time',
  relative: 'Relative time'
};

/** A value that is null is a gap. Infinite ones are marked at the edge of the chart. */
export type Value = number | null;

/** `bold` is in front, `faint` behind; `background` is grey, of many that are not told apart. */
export type Look = 'plain' | 'bold' | 'faint' | 'background';

/** A curve. Never changed in place: what is the same object is not drawn anew. */
export interface Series {
  /** The same for the same curve in the next update, and in no other series of the chart. */
  readonly key: string;
  /** The name in the legend, as it comes: it may be long, and contain anything. */
  readonly label: string;
  /** What tells it apart besides its name: changed hyperparameters, such as `lr 0.01, units 64`. */
  readonly detail?: string;
  /** Series of the same group (training and validation of a trial) are highlighted together; else the key. */
  readonly group?: string;
  /** Which colour of the palette, from 0. Beyond the eighth they repeat, and a dash tells them apart. */
  readonly colour: number;
  readonly look?: Look;
  /** Dashed anyway, whatever the colour; training beside validation, say. */
  readonly dashed?: boolean;
  /** Ascending, as many as values. What is not known is missing: a chart offers axes that all of its series have. Time is in seconds (`time`: since 1970). */
  readonly x: Readonly<Partial<Record<Axis, readonly number[]>>>;
  readonly values: readonly Value[];
  /** The newest value as it was reported, where what is drawn is the mean of several. */
  readonly last?: number | null;
  /** From and to around the values, such as minimum and maximum or a deviation; of as many. */
  readonly band?: {
    readonly minimum: readonly Value[];
    readonly maximum: readonly Value[];
  } | null;
  /** Which metric of which trial it is; what is worked out from several has no such source. */
  readonly source?: {
    readonly trialId: number;
    readonly kind: MetricCurve['kind'];
    readonly name: string;
  };
  /** Not every value that was reported is here: the master has taken neighbours together. */
  readonly reduced?: boolean;
}

export type Smoothing =
  | { readonly kind: 'none' }
  /** Exponential moving average: the weight of what was before, from 0 to 1. */
  | { readonly kind: 'ema'; readonly weight: number }
  /** Mean of so many points around each. */
  | { readonly kind: 'window'; readonly points: number };

/** How all charts of a board are drawn. */
export interface ChartSettings {
  readonly axis: Axis;
  readonly smoothing: Smoothing;
  readonly logX: boolean;
  readonly logY: boolean;
  /** The y axis follows the bulk of the values: single peaks may lie beyond it. */
  readonly ignoreOutliers: boolean;
  /** Ends of the y axis that the user typed; null where the data decide. */
  readonly minimum: number | null;
  readonly maximum: number | null;
}

export const DEFAULT_SETTINGS: ChartSettings = {
  axis: 'batch',
  smoothing: { kind: 'none' },
  logX: false,
  logY: false,
  ignoreOutliers: false,
  minimum: null,
  maximum: null
};

/** A stretch of the x axis that is shown, in its units; null for all. */
export type Zoom = readonly [from: number, to: number] | null;

/** One chart, wherever it is shown. */
export interface ChartData {
  /** The same for the same chart in the next update, and in an address. */
  readonly key: string;
  readonly title: string;
  readonly series: readonly Series[];
  /** What the y axis measures; the title by default. */
  readonly unit?: string;
  /** How a value is written; four digits that count by default. */
  readonly format?: (value: number) => string;
  /** The y axis reaches at least from and to here. */
  readonly least?: readonly [minimum: number, maximum: number];
}

export interface CurveChartProps extends ChartData {
  readonly settings: ChartSettings;
  /** Charts with the same one share cursor, zoom and highlighted group. By default the chart has one of its own. */
  readonly sync?: ChartSync;
  /** Height of the plot in pixels; 220 by default. */
  readonly height?: number;
  /** Fetch all that was reported, for a CSV file; without it the file has what is drawn. */
  readonly loadFull?: (
    chart: ChartData,
    signal: AbortSignal
  ) => Promise<readonly Series[]>;
  /** Name of exported files without their ending; the title by default. */
  readonly fileName?: string;
}

/** The axes that every series of these charts has. */
export function axesOf(charts: readonly ChartData[]): Axis[] {
  const series = charts.flatMap(chart => chart.series);
  return AXES.filter(axis => series.every(({ x }) => x[axis] !== undefined));
}

/** The axis on which these series are drawn: the wanted one, or the first that all of them have. */
export function usedAxis(series: readonly Series[], wanted: Axis): Axis {
  const known = axesOf([{ key: '', title: '', series }]);
  return known.includes(wanted) ? wanted : (known[0] ?? 'batch');
}

/** What is highlighted together with a series. */
export function groupOf(series: Series): string {
  return series.group ?? series.key;
}

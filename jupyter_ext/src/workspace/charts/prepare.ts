/** Series as they are drawn: on one x axis, smoothed, without what a logarithmic axis has no place for. Pure. */

import { type LineLook, lookOf } from './looks';
import type { Axis, ChartSettings, Series, Value, Zoom } from './series';
import { smooth, smooths } from './smoothing';

/** What lies beyond the edge of a chart. */
export interface Beyond {
  readonly x: number;
  readonly positive: boolean;
}

export interface Drawn {
  readonly series: Series;
  readonly look: LineLook;
  readonly x: readonly number[];
  readonly y: readonly Value[];
  /** The values as they were reported, behind those that are smoothed; null where nothing is smoothed. */
  readonly raw: readonly Value[] | null;
  readonly band: {
    readonly minimum: readonly Value[];
    readonly maximum: readonly Value[];
  } | null;
  readonly infinities: readonly Beyond[];
  /** How many points a logarithmic axis has no place for. */
  readonly omitted: number;
}

const ORDER = ['background', 'faint', 'plain', 'bold'];

/** In the order in which they are drawn: what is bold comes last and lies on top. */
export function prepare(
  series: readonly Series[],
  axis: Axis,
  settings: ChartSettings
): Drawn[] {
  const place = ({ look = 'plain' }: Series) => ORDER.indexOf(look);
  return series
    .toSorted((one, other) => place(one) - place(other))
    .map(each => prepareSeries(each, axis, settings));
}

function prepareSeries(
  series: Series,
  axis: Axis,
  settings: ChartSettings
): Drawn {
  const { logX, logY, smoothing } = settings;
  const places = series.x[axis] ?? [];
  const smoothed = smooths(smoothing);
  const main = smooth(series.values, smoothing);
  const kept: number[] = [];
  const infinities: Beyond[] = [];
  let omitted = 0;
  const drawable = (value: Value | undefined): Value =>
    typeof value === 'number' && Number.isFinite(value) && (!logY || value > 0)
      ? value
      : null;
  for (let at = 0; at < places.length; at++) {
    const x = places[at]!;
    const value = series.values[at] ?? null;
    if (!Number.isFinite(x)) {
      continue;
    }
    if (logX && x <= 0) {
      omitted += 1;
      continue;
    }
    kept.push(at);
    if (value === Infinity || value === -Infinity) {
      infinities.push({ x, positive: value > 0 });
    } else if (logY && value !== null && value <= 0) {
      omitted += 1;
    }
  }
  const pick = (values: readonly Value[]) =>
    kept.map(at => drawable(values[at]));
  return {
    series,
    look: lookOf(series),
    x: kept.map(at => places[at]!),
    y: pick(main),
    raw: smoothed ? pick(series.values) : null,
    // Around a line that is smoothed it would be the band of another line.
    band:
      series.band && !smoothed && series.look !== 'background'
        ? {
            minimum: pick(series.band.minimum),
            maximum: pick(series.band.maximum)
          }
        : null,
    infinities,
    omitted
  };
}

/** Ends of the x axis: those of the zoom, or of all series; with room around a single point. */
export function xRange(
  drawn: readonly Drawn[],
  zoom: Zoom,
  logarithmic: boolean
): [number, number] {
  if (zoom !== null) {
    return [zoom[0], zoom[1]];
  }
  let [from, to] = [Infinity, -Infinity];
  for (const { x } of drawn) {
    from = Math.min(from, x[0] ?? Infinity);
    to = Math.max(to, x.at(-1) ?? -Infinity);
  }
  if (from > to) {
    return logarithmic ? [1, 10] : [0, 1];
  }
  if (from === to) {
    return logarithmic ? [from / 2, from * 2] : [from - 1, from + 1];
  }
  return [from, to];
}

/** Share of the values, at each end, that may lie beyond the axis where outliers are ignored. */
const OUTLIERS = 0.03;
const ROOM = 0.06;

/** Ends of the y axis for what is seen between two x. */
export function yRange(
  drawn: readonly Drawn[],
  [from, to]: readonly [number, number],
  settings: Pick<
    ChartSettings,
    'logY' | 'ignoreOutliers' | 'minimum' | 'maximum'
  >,
  least?: readonly [number, number]
): [number, number] {
  const values: number[] = [];
  let [low, high] = [Infinity, -Infinity];
  const take = (value: Value | undefined) => {
    if (typeof value === 'number') {
      low = Math.min(low, value);
      high = Math.max(high, value);
      if (settings.ignoreOutliers) {
        values.push(value);
      }
    }
  };
  for (const { x, y, raw, band } of drawn) {
    for (let at = 0; at < x.length; at++) {
      const place = x[at]!;
      if (place >= from && place <= to) {
        take(y[at]);
        if (raw) {
          take(raw[at]);
        }
        if (band && !settings.ignoreOutliers) {
          take(band.minimum[at]);
          take(band.maximum[at]);
        }
      }
    }
  }
  if (settings.ignoreOutliers && values.length > 4) {
    values.sort((one, other) => one - other);
    low = quantile(values, OUTLIERS);
    high = quantile(values, 1 - OUTLIERS);
  }
  if (low > high) {
    [low, high] = settings.logY ? [0.1, 1] : [0, 1];
  }
  if (least && !settings.logY) {
    [low, high] = [Math.min(low, least[0]), Math.max(high, least[1])];
  }
  return withBounds(withRoom(low, high, settings.logY, least), settings);
}

function withRoom(
  low: number,
  high: number,
  logarithmic: boolean,
  least?: readonly [number, number]
): [number, number] {
  if (logarithmic) {
    if (low === high) {
      return [low / 2, high * 2];
    }
    const room = (high / low) ** ROOM;
    return Number.isFinite(room) ? [low / room, high * room] : [low, high];
  }
  if (low === high) {
    const room = Math.abs(low) / 10 || 1;
    return [low === least?.[0] ? low : low - room, high + room];
  }
  const room = high * ROOM - low * ROOM;
  const isFloor = least !== undefined && low === least[0];
  return [
    // Shares and losses begin at zero: an axis that goes below it tells of values that there are not.
    isFloor || (low >= 0 && low - room < 0) ? Math.min(low, 0) : low - room,
    high + room
  ];
}

function withBounds(
  [low, high]: readonly [number, number],
  {
    minimum,
    maximum,
    logY
  }: Pick<ChartSettings, 'minimum' | 'maximum' | 'logY'>
): [number, number] {
  const usable = (bound: number | null) =>
    bound !== null && (!logY || bound > 0) ? bound : null;
  const [from, to] = [usable(minimum) ?? low, usable(maximum) ?? high];
  if (from < to) {
    return [from, to];
  }
  // All values are beyond the bound that was typed.
  return usable(minimum) !== null
    ? [from, logY ? from * 10 : from + (Math.abs(from) || 1)]
    : [logY ? to / 10 : to - (Math.abs(to) || 1), to];
}

/** Of sorted values. */
export function quantile(sorted: readonly number[], share: number): number {
  const place = share * (sorted.length - 1);
  const [low, high] = [Math.floor(place), Math.ceil(place)];
  const [one, other] = [sorted[low] ?? NaN, sorted[high] ?? NaN];
  return one + (other - one) * (place - low);
}

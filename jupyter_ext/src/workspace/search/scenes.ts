/** Plots of trials as shapes: scatter, history, rank, contour, Pareto front, intermediate values. Pure. */

import { formatValue } from '../../shared/format';
import {
  type Area,
  areaOf,
  barShapes,
  frameShapes,
  type PlotColours,
  rampColour
} from './frame';
import { type Scale, scaleOf } from './scales';
import { type DotShape, MARKS, type Shape, type Size } from './shapes';
import { type AnalysedTrial, type Dimension, valueOf } from './trials';

/** Where a trial can be pointed at. */
export interface Hit {
  readonly key: string;
  readonly x: number;
  readonly y: number;
}

export interface Scene {
  readonly shapes: readonly Shape[];
  readonly hits: readonly Hit[];
  /** Trials that have no place in it. */
  readonly omitted: number;
}

/** How points are coloured: by a number along the ramp, or by experiment. */
export type Colouring =
  | {
      readonly by: 'value';
      readonly dimension: Dimension;
      /** Smaller values are the better ones, which stand out. */
      readonly smaller: boolean;
      readonly name?: string;
      readonly value?: (trial: AnalysedTrial) => unknown;
    }
  | { readonly by: 'group' }
  | { readonly by: 'none' };

export interface ScatterInput {
  readonly trials: readonly AnalysedTrial[];
  readonly x: Dimension;
  readonly y: Dimension;
  readonly colouring: Colouring;
  readonly size: Size;
  readonly colours: PlotColours;
  /** What lies below the points, such as a contour. */
  readonly below?: (area: Area, across: Scale, up: Scale) => Shape[];
  /** Points that are marked, such as a Pareto front. */
  readonly marked?: ReadonlySet<string>;
  readonly above?: (area: Area, across: Scale, up: Scale) => Shape[];
}

const SMALL_FROM = 400;

/** A point for each trial that has both values. */
export function scatterScene(input: ScatterInput): Scene {
  const { trials, x, y, colouring, size, colours } = input;
  const across = scaleOf(
    trials.map(trial => valueOf(trial, x)),
    x.log
  );
  const up = scaleOf(
    trials.map(trial => valueOf(trial, y)),
    y.log
  );
  const bar = colouring.by === 'value';
  const area = areaOf(size, up, bar);
  const paint = painter(trials, colouring, colours);
  const r = trials.length > SMALL_FROM ? 2.5 : 3.5;
  const dots: Array<DotShape & { readonly rank: number }> = [];
  const hits: Hit[] = [];
  for (const trial of trials) {
    const [one, other] = [valueOf(trial, x), valueOf(trial, y)];
    const placeX = one === undefined ? null : across.place(one);
    const placeY = other === undefined ? null : up.place(other);
    if (placeX === null || placeY === null) {
      continue;
    }
    const at = {
      x:
        area.x(placeX) +
        (across.kind === 'category' ? jitter(trial, area, across) : 0),
      y: area.y(placeY)
    };
    const marked = input.marked?.has(trial.key) ?? false;
    const { colour, rank } = paint(trial);
    hits.push({ key: trial.key, ...at });
    dots.push({
      kind: 'dot',
      ...at,
      r: marked ? r + 1.5 : r,
      fill: colour,
      mark:
        colouring.by === 'group' ? MARKS[trial.group % MARKS.length] : 'circle',
      stroke: marked ? colours.strong : undefined,
      opacity: trials.length > SMALL_FROM ? 0.8 : 1,
      rank: marked ? Infinity : rank
    });
  }
  dots.sort((one, other) => one.rank - other.rank);
  return {
    shapes: [
      ...(input.below?.(area, across, up) ?? []),
      ...frameShapes(area, across, up, { x: x.name, y: y.name }, colours),
      ...dots.map(({ rank: _, ...dot }) => dot),
      ...(input.above?.(area, across, up) ?? []),
      ...(bar ? barOf(trials, colouring, size, colours) : [])
    ],
    hits,
    omitted: trials.length - hits.length
  };
}

/** Points of the same category lie beside each other, the same at each drawing. */
function jitter(
  { trialId }: AnalysedTrial,
  area: Area,
  { ticks }: Scale
): number {
  const width = (area.right - area.left) / Math.max(ticks.length, 1);
  return (((trialId * 0.618034) % 1) - 0.5) * Math.min(width * 0.5, 24);
}

type Paint = (trial: AnalysedTrial) => { colour: string; rank: number };

export function painter(
  trials: readonly AnalysedTrial[],
  colouring: Colouring,
  colours: PlotColours
): Paint {
  if (colouring.by === 'value') {
    const value =
      colouring.value ??
      ((trial: AnalysedTrial) => valueOf(trial, colouring.dimension));
    const scale = scaleOf(trials.map(value), colouring.dimension.log);
    return trial => {
      const read = value(trial);
      const place = read === undefined ? null : scale.place(read);
      if (place === null) {
        return { colour: colours.other, rank: -1 };
      }
      const rank = colouring.smaller ? 1 - place : place;
      return { colour: rampColour(rank, colours.dark), rank };
    };
  }
  return trial => ({
    colour:
      colours.trials[
        colouring.by === 'group' ? trial.group % colours.trials.length : 0
      ] ?? colours.other,
    rank: 0
  });
}

export function barOf(
  trials: readonly AnalysedTrial[],
  colouring: Colouring & { by: 'value' },
  size: Size,
  colours: PlotColours
): Shape[] {
  const { dimension, smaller, name, value } = colouring;
  const scale = scaleOf(
    trials.map(value ?? (trial => valueOf(trial, dimension))),
    dimension.log
  );
  return barShapes(scale, name ?? dimension.name, smaller, size, colours);
}

/** Each trial's value in its order, and the best one so far as a line. */
export function historyScene(
  trials: readonly AnalysedTrial[],
  metric: Dimension,
  smaller: boolean,
  size: Size,
  colours: PlotColours
): Scene {
  const number: Dimension = {
    id: 'number',
    name: 'Number of the trial',
    kind: 'number',
    log: false
  };
  return scatterScene({
    trials,
    x: number,
    y: metric,
    colouring: { by: 'group' },
    size,
    colours,
    above: (area, across, up) => {
      const points: number[] = [];
      let best: number | null = null;
      for (const { x, value } of ordered(trials, metric)) {
        const at = area.x(across.place(x) ?? 0);
        const better: number =
          best === null
            ? value
            : smaller
              ? Math.min(best, value)
              : Math.max(best, value);
        if (best !== null) {
          points.push(at, area.y(up.place(best) ?? 0));
        }
        points.push(at, area.y(up.place(better) ?? 0));
        best = better;
      }
      return [{ kind: 'line', points, stroke: colours.trials[1]!, width: 2 }];
    }
  });
}

function ordered(trials: readonly AnalysedTrial[], metric: Dimension) {
  return trials
    .map(trial => ({ x: trial.number, value: valueOf(trial, metric) }))
    .filter(
      (each): each is { x: number; value: number } =>
        typeof each.value === 'number' && Number.isFinite(each.value)
    )
    .sort((one, other) => one.x - other.x);
}

/** Place of each trial among all by a metric, from 0 (best) to 1; the same for equal values. */
export function ranks(
  trials: readonly AnalysedTrial[],
  metric: Dimension,
  smaller: boolean
): Map<string, number> {
  const values = trials.flatMap(trial => {
    const value = valueOf(trial, metric);
    return typeof value === 'number' && !Number.isNaN(value)
      ? [{ key: trial.key, value: smaller ? value : -value }]
      : [];
  });
  values.sort((one, other) => one.value - other.value);
  const found = new Map<string, number>();
  let place = 0;
  values.forEach(({ key, value }, at) => {
    if (at > 0 && value !== values[at - 1]!.value) {
      place = at;
    }
    found.set(key, values.length > 1 ? place / (values.length - 1) : 0);
  });
  return found;
}

const CELLS = 48;
const BANDS = 9;
const MOST_NEIGHBOURS = 300;

/** Colour bands of a metric over two hyperparameters: a weighted mean of the trials around each place. */
export function contourShapes(
  trials: readonly AnalysedTrial[],
  [x, y, metric]: readonly [Dimension, Dimension, Dimension],
  smaller: boolean,
  colours: PlotColours
): (area: Area, across: Scale, up: Scale) => Shape[] {
  return (area, across, up) => {
    const scale = scaleOf(trials.map(trial => valueOf(trial, metric)));
    const all = trials.flatMap(trial => {
      const [a, b] = [valueOf(trial, x), valueOf(trial, y)];
      const places = [
        a === undefined ? null : across.place(a),
        b === undefined ? null : up.place(b),
        scale.place(valueOf(trial, metric))
      ];
      return places.includes(null) ? [] : [places as number[]];
    });
    if (all.length < 3) {
      return [];
    }
    // Evenly drawn: the time grows with cells times points.
    const every = Math.ceil(all.length / MOST_NEIGHBOURS);
    const points = all.filter((_, at) => at % every === 0);
    const width = (area.right - area.left) / CELLS;
    const height = (area.bottom - area.top) / CELLS;
    const shapes: Shape[] = [];
    for (let column = 0; column < CELLS; column += 1) {
      for (let row = 0; row < CELLS; row += 1) {
        const place = meanAt(
          points,
          (column + 0.5) / CELLS,
          (row + 0.5) / CELLS
        );
        const band = Math.round(place * BANDS) / BANDS;
        shapes.push({
          kind: 'rect',
          x: area.left + column * width,
          y: area.bottom - (row + 1) * height,
          width: width + 0.5,
          height: height + 0.5,
          fill: rampColour(smaller ? 1 - band : band, colours.dark)
        });
      }
    }
    const byFill = (shape: Shape) => (shape.kind === 'rect' ? shape.fill : '');
    return shapes.sort((one, other) => (byFill(one) < byFill(other) ? -1 : 1));
  };
}

/** How far a trial tells of its neighbourhood, as a share of the axis. */
const REACH = 0.07;

function meanAt(points: readonly number[][], x: number, y: number): number {
  let sum = 0;
  let weights = 0;
  for (const [px, py, value] of points) {
    const distance = ((px! - x) ** 2 + (py! - y) ** 2) / REACH ** 2;
    // Far from all of them the nearest ones still count.
    const weight = Math.exp(-distance / 2) + 1e-6 / (1 + distance);
    sum += weight * value!;
    weights += weight;
  }
  return sum / weights;
}

/** Keys of trials of which no other is as good in every metric and better in one. */
export function paretoFront(
  trials: readonly AnalysedTrial[],
  metrics: ReadonlyArray<{ name: string; smaller: boolean }>
): string[] {
  const scored = trials
    .map(trial => ({
      key: trial.key,
      scores: metrics.map(({ name, smaller }) => {
        const value = trial.metrics.get(name) ?? NaN;
        return smaller ? value : -value;
      })
    }))
    .filter(({ scores }) => scores.every(Number.isFinite))
    .sort((one, other) => {
      const at = one.scores.findIndex((each, i) => each !== other.scores[i]);
      return at < 0 ? 0 : one.scores[at]! - other.scores[at]!;
    });
  const front: typeof scored = [];
  for (const each of scored) {
    const dominated = front.some(
      ({ scores }) =>
        scores.every((value, at) => value <= each.scores[at]!) &&
        scores.some((value, at) => value !== each.scores[at])
    );
    if (!dominated) {
      front.push(each);
    }
  }
  return front.map(({ key }) => key);
}

/** Bars of shares, greatest first. */
export function barsScene(
  bars: ReadonlyArray<{ name: string; share: number }>,
  { width }: Size,
  colours: PlotColours
): Scene {
  const row = 24;
  const left = Math.min(160, width * 0.38);
  const full = Math.max(20, width - left - 60);
  const shapes = bars.flatMap(({ name, share }, at): Shape[] => {
    const y = 8 + at * row;
    return [
      {
        kind: 'text',
        x: left - 8,
        y: y + 13,
        text: clip(name, Math.floor((left - 8) / 6.2)),
        fill: colours.strong,
        anchor: 'end'
      },
      {
        kind: 'rect',
        x: left,
        y: y + 2,
        width: Math.max(1, share * full),
        height: row - 8,
        fill: colours.trials[0]!
      },
      {
        kind: 'text',
        x: left + Math.max(1, share * full) + 6,
        y: y + 13,
        text: formatValue(Number(share.toFixed(3))),
        fill: colours.text
      }
    ];
  });
  return { shapes, hits: [], omitted: 0 };
}

function clip(text: string, most: number): string {
  const letters = [...text.slice(0, 2 * most + 2)];
  return letters.length > most
    ? `${letters.slice(0, most - 1).join('')}…`
    : text;
}

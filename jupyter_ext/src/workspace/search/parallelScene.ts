/** Parallel coordinates: an axis for each dimension, a line for each trial. Pure. */

import { type PlotColours, thinned } from './frame';
import { type Colouring, painter } from './scenes';
import { type Scale, scaleOf } from './scales';
import { clipped, type LineShape, type Shape, type Size } from './shapes';
import {
  type AnalysedTrial,
  type Brushes,
  type Dimension,
  passing,
  valueOf
} from './trials';

export interface ParallelAxis {
  readonly dimension: Dimension;
  readonly scale: Scale;
  /** In pixels from the left. */
  readonly x: number;
}

export interface ParallelLine {
  readonly key: string;
  /** Height of the line at each axis. */
  readonly ys: readonly number[];
}

/** What does not change with filters: a drag on an axis draws many of them a second. */
export interface ParallelLayout {
  readonly axes: readonly ParallelAxis[];
  readonly top: number;
  readonly bottom: number;
  readonly size: Size;
  /** The better ones last: they lie above. */
  readonly all: ReadonlyArray<{
    readonly trial: AnalysedTrial;
    readonly shape: LineShape;
    readonly line: ParallelLine;
  }>;
  /** All lines in grey, seen where filters take some away. */
  readonly backdrop: readonly Shape[];
  readonly axisShapes: readonly Shape[];
  /** Names of the axes, for files. */
  readonly names: readonly Shape[];
}

export interface ParallelScene {
  readonly axes: readonly ParallelAxis[];
  readonly top: number;
  readonly bottom: number;
  /** Of trials that pass the filters: what can be pointed at. */
  readonly lines: readonly ParallelLine[];
  /** Above the backdrop. */
  readonly shapes: readonly Shape[];
}

/** Places of axes: the names stand above, what has no value below. */
const TOP = 12;
const BOTTOM = 34;
const SIDE = 46;
const MISSING = 18;
const LETTER = 6.2;

/** How wide it is at least: narrower places scroll. */
export function leastWidth(axes: number): number {
  return Math.max(280, axes * 96);
}

/** Scales of the axes; they don't change with filters. */
export function scalesOf(
  trials: readonly AnalysedTrial[],
  dimensions: readonly Dimension[]
): Scale[] {
  return dimensions.map(dimension =>
    scaleOf(
      trials
        .map(trial => valueOf(trial, dimension))
        .filter(value => value !== undefined),
      dimension.log
    )
  );
}

export interface ParallelInput {
  readonly trials: readonly AnalysedTrial[];
  readonly dimensions: readonly Dimension[];
  readonly scales: readonly Scale[];
  readonly colouring: Colouring;
  readonly size: Size;
  readonly colours: PlotColours;
}

export function parallelLayout(input: ParallelInput): ParallelLayout {
  const { trials, dimensions, scales, colouring, size, colours } = input;
  const top = TOP;
  const bottom = size.height - BOTTOM;
  const step = (size.width - 2 * SIDE) / Math.max(dimensions.length - 1, 1);
  const axes = dimensions.map((dimension, at) => ({
    dimension,
    scale: scales[at]!,
    x: dimensions.length > 1 ? SIDE + at * step : size.width / 2
  }));
  const paint = painter(trials, colouring, colours);
  const many = trials.length > 200;
  let missing = false;
  const all = trials
    .map(trial => {
      const ys: number[] = [];
      const points: number[] = [];
      for (const { dimension, scale, x } of axes) {
        const value = valueOf(trial, dimension);
        const place = value === undefined ? null : scale.place(value);
        missing ||= place === null;
        const y =
          place === null ? bottom + MISSING : bottom - place * (bottom - top);
        ys.push(y);
        points.push(x, y);
      }
      const { colour, rank } = paint(trial);
      const shape: LineShape = {
        kind: 'line',
        points,
        stroke: colour,
        width: many ? 1 : 1.5,
        opacity: many ? 0.55 : 0.8
      };
      return { trial, rank, shape, line: { key: trial.key, ys } };
    })
    .sort((one, other) => one.rank - other.rank);
  const axisShapes = axes.flatMap(axis =>
    axisOf(axis, top, bottom, step, colours)
  );
  if (missing) {
    axisShapes.push({
      kind: 'text',
      x: 4,
      y: bottom + MISSING + 4,
      text: 'none',
      fill: colours.text
    });
  }
  return {
    axes,
    top,
    bottom,
    size,
    all,
    axisShapes,
    backdrop: all.map(({ shape }) => ({
      ...shape,
      stroke: colours.other,
      width: 1,
      opacity: 0.25
    })),
    names: axes.map(({ x, dimension }) => ({
      kind: 'text',
      x,
      y: size.height - 2,
      text: clipped(dimension.name, Math.max(8, Math.floor(step / LETTER))),
      fill: colours.strong,
      anchor: 'middle',
      bold: true
    }))
  };
}

/** The lines of trials that pass the filters. */
export function parallelScene(
  layout: ParallelLayout,
  brushes: Brushes
): ParallelScene {
  const { axes, top, bottom, all, axisShapes } = layout;
  const byId = new Map(axes.map(({ dimension }) => [dimension.id, dimension]));
  const passes = passing(brushes, byId);
  const included = all.filter(({ trial }) => passes(trial));
  return {
    axes,
    top,
    bottom,
    lines: included.map(({ line }) => line),
    shapes: [...included.map(({ shape }) => shape), ...axisShapes]
  };
}

function axisOf(
  { x, scale }: ParallelAxis,
  top: number,
  bottom: number,
  step: number,
  colours: PlotColours
): Shape[] {
  const letters = Math.max(4, Math.min(14, Math.floor((step - 12) / LETTER)));
  return [
    {
      kind: 'line',
      points: [x, top, x, bottom],
      stroke: colours.text,
      width: 1
    },
    ...thinned(scale.ticks, bottom - top, () => 15).flatMap(
      ({ place, text }): Shape[] => {
        const y = bottom - place * (bottom - top);
        const shown = clipped(text, letters);
        return [
          {
            kind: 'rect',
            x: x + 4,
            y: y - 7,
            width: shown.length * LETTER + 4,
            height: 14,
            fill: `${colours.surface}cc`
          },
          {
            kind: 'line',
            points: [x - 3, y, x + 3, y],
            stroke: colours.text,
            width: 1
          },
          {
            kind: 'text',
            x: x + 6,
            y: y + 4,
            text: shown,
            fill: colours.strong
          }
        ];
      }
    )
  ];
}

const REACH = 10;

/** The line that is nearest to a place; null where none is near. */
export function lineAt(
  { axes, lines }: ParallelScene,
  x: number,
  y: number
): ParallelLine | null {
  let after = axes.findIndex(axis => axis.x >= x);
  after = after < 0 ? axes.length - 1 : Math.max(after, 1);
  const [one, other] = [axes[after - 1], axes[after]];
  if (!one) {
    return null;
  }
  const share = other ? (x - one.x) / (other.x - one.x || 1) : 0;
  let found: ParallelLine | null = null;
  let nearest = REACH;
  for (const line of lines) {
    const from = line.ys[after - 1]!;
    const to = line.ys[after] ?? from;
    const distance = Math.abs(from + share * (to - from) - y);
    // Of equals the last one: it lies above.
    if (distance <= nearest) {
      nearest = distance;
      found = line;
    }
  }
  return found;
}

/** The points of a line. */
export function pointsOf(
  { axes }: ParallelScene,
  line: ParallelLine
): number[] {
  return axes.flatMap(({ x }, at) => [x, line.ys[at]!]);
}

/** Values of a metric while trials train, and the stages at which a search ended some of them. Pure. */

import type { MetricCurve, Trial } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { areaOf, frameShapes, type PlotColours } from './frame';
import { type Colouring, type Hit, painter, type Scene } from './scenes';
import { scaleOf } from './scales';
import type { Shape, Size } from './shapes';
import type { AnalysedTrial } from './trials';

export interface StagesInput {
  readonly trials: readonly AnalysedTrial[];
  readonly raw: readonly Trial[];
  readonly curves: readonly MetricCurve[];
  readonly metric: string;
  readonly colouring: Colouring;
  readonly size: Size;
  readonly colours: PlotColours;
}

/**
 * The curves of a metric by the name that it has among the metrics of a search: of its validations.
 *
 * Where a metric is reported with those of the training only, as a loop of the user's own does, those count.
 */
export function curvesOfMetric(
  curves: readonly MetricCurve[],
  metric: string
): MetricCurve[] {
  const own = curves.filter(({ name }) => name === metric);
  if (own.length === 0) {
    return curves.filter(({ name, kind }) => `${name} (${kind})` === metric);
  }
  const found = KINDS.find(wanted => own.some(({ kind }) => kind === wanted));
  return own.filter(({ kind }) => kind === found);
}

const KINDS: ReadonlyArray<MetricCurve['kind']> = [
  'validation',
  'training',
  'logged'
];

/** The batches at which trials of each stage ended; none where all train for one length. */
export function stageBatches(trials: readonly Trial[]): number[] {
  const lengths = new Set(trials.flatMap(({ stages = [] }) => stages));
  if (lengths.size < 2) {
    return [];
  }
  const found = new Map<number, number>();
  for (const { state, stages = [], batches } of trials) {
    const last = stages.at(-1);
    if (last !== undefined && isTerminal(state) && batches > 0) {
      found.set(last, Math.max(found.get(last) ?? 0, batches));
    }
  }
  return [...new Set(found.values())].sort((one, other) => one - other);
}

/** A line for each trial; a cross where the search ended it, a dot where it trained to the end. */
export function stagesScene(input: StagesInput): Scene {
  const { trials, raw, metric, colouring, size, colours } = input;
  const curves = curvesOfMetric(input.curves, metric);
  const across = scaleOf([0, ...curves.flatMap(({ batch }) => batch)]);
  const up = scaleOf(
    curves.flatMap(({ mean }) => mean).filter(value => value !== null)
  );
  const area = areaOf(size, up, false);
  const shapes: Shape[] = frameShapes(
    area,
    across,
    up,
    { x: 'Batches', y: metric },
    colours
  );
  for (const batch of stageBatches(raw)) {
    const x = area.x(across.place(batch) ?? 0);
    shapes.push({
      kind: 'line',
      points: [x, area.top, x, area.bottom],
      stroke: colours.text,
      width: 1,
      dashed: true
    });
  }
  const byId = new Map(trials.map(trial => [trial.trialId, trial]));
  const states = new Map(raw.map(trial => [trial.id, trial]));
  const longest = raw.reduce((most, { batches }) => Math.max(most, batches), 0);
  const paint = painter(trials, colouring, colours);
  const hits: Hit[] = [];
  const drawn = curves.flatMap(({ trial_id: id, batch, mean }) => {
    const trial = byId.get(id);
    const points: number[] = [];
    batch.forEach((at, index) => {
      const value = mean[index] ?? null;
      const place = value === null ? null : up.place(Number(value));
      if (trial && place !== null) {
        const x = area.x(across.place(at) ?? 0);
        points.push(x, area.y(place));
        hits.push({ key: trial.key, x, y: area.y(place) });
      }
    });
    return trial && points.length > 0 ? [{ trial, points }] : [];
  });
  const many = drawn.length > 100;
  const looks = drawn
    .map(each => ({ ...each, ...paint(each.trial) }))
    .sort((one, other) => one.rank - other.rank);
  for (const { points, colour } of looks) {
    shapes.push({
      kind: 'line',
      points,
      stroke: colour,
      width: many ? 1 : 1.5,
      opacity: many ? 0.6 : 0.9
    });
  }
  for (const { trial, points, colour } of looks) {
    const state = states.get(trial.trialId);
    const early = state !== undefined && state.batches < longest;
    if (state !== undefined && isTerminal(state.state)) {
      shapes.push({
        kind: 'dot',
        x: points.at(-2)!,
        y: points.at(-1)!,
        r: early ? 4 : 3,
        fill: colour,
        mark: early ? 'cross' : 'circle'
      });
    }
  }
  return { shapes, hits, omitted: trials.length - drawn.length };
}

/** From batches to epochs, samples and times, and back, as far as they are known of a trial. Pure. */

import type { components } from '../../generated/rest';
import type { Trial } from '../../shared/model';
import type { Axis } from './series';

export type TrialClock = components['schemas']['TrialClock'];

/** Points of a function that grows, ascending in both. */
interface Growth {
  readonly from: readonly number[];
  readonly to: readonly number[];
  /** Beyond its ends it stays as it is there: no report comes before the start of a trial or after its end. */
  readonly bounded?: boolean;
}

/** What is known of the axes of a trial. */
export interface TrialAxes {
  /** Batches on the axes that are known; `batch` always is. */
  readonly growths: Readonly<Partial<Record<Exclude<Axis, 'batch'>, Growth>>>;
  /** When it started, in seconds since 1970. */
  readonly started: number | null;
}

/** What says how batches, samples and epochs of a trial belong together, and when it ended. */
export interface TrialFacts extends Lengths {
  readonly hparams: Trial['hparams'];
  /** How many batches it has done. */
  readonly batches?: number;
  readonly ended?: string | null;
}

/** What of an experiment's configuration says so. */
export interface Lengths {
  readonly recordsPerEpoch: number;
  readonly slotsPerTrial: number;
}

export function lengthsOf(config: Readonly<Record<string, unknown>>): Lengths {
  const resources = config['resources'] as { slots_per_trial?: unknown } | null;
  const [records, slots] = [
    config['records_per_epoch'],
    resources?.slots_per_trial
  ];
  return {
    recordsPerEpoch: typeof records === 'number' ? records : 0,
    slotsPerTrial: typeof slots === 'number' ? slots : 1
  };
}

export function axesOfTrial(
  clock: TrialClock | undefined,
  facts: TrialFacts
): TrialAxes {
  const { hparams, recordsPerEpoch, slotsPerTrial } = facts;
  const batchSize = Number(hparams['global_batch_size']);
  const sized = Number.isFinite(batchSize) && batchSize > 0;
  const { epoch = [], epoch_batch: ends = [] } = clock ?? {};
  const growths: { -readonly [name in Exclude<Axis, 'batch'>]?: Growth } = {};
  // A record for each slot stands where the size is not known, for a loop without a loader.
  if (sized && batchSize > Math.max(slotsPerTrial, 1)) {
    growths.samples = { from: [0, 1], to: [0, batchSize] };
  }
  if (epoch.length > 0) {
    growths.epoch = { from: [0, ...ends], to: [0, ...epoch] };
  } else if (sized && recordsPerEpoch > 0) {
    growths.epoch = { from: [0, recordsPerEpoch], to: [0, batchSize] };
  }
  const started = clock?.started ?? null;
  const time = clock && timesOf(clock, facts);
  if (time && started !== null) {
    growths.time = time;
    growths.relative = { ...time, to: time.to.map(at => at - started) };
  }
  return { growths, started };
}

/** From batches to times: from the start over all reports to the end, as far as the reports do not reach there. */
function timesOf(
  { started, batch, time }: Partial<TrialClock>,
  { batches = 0, ended }: TrialFacts
): Growth | null {
  if (typeof started !== 'number' || !batch?.length || !time?.length) {
    return null;
  }
  const end = typeof ended === 'string' ? Date.parse(ended) / 1000 : NaN;
  const points: Array<[number, number]> = [[0, Math.min(started, time[0]!)]];
  const reports = batch.map((at, index): [number, number] => [
    at,
    time[index]!
  ]);
  for (const [at, when] of [...reports, [batches, end] as const]) {
    const [before, then] = points.at(-1)!;
    // Several batches of one report have one time.
    if (at > before && when > then) {
      points.push([at, when]);
    }
  }
  return points.length > 1
    ? {
        from: points.map(([at]) => at),
        to: points.map(([, when]) => when),
        bounded: true
      }
    : null;
}

/** Batches on all axes that are known. */
export function placesOf(
  { growths }: TrialAxes,
  batches: readonly number[]
): Partial<Record<Axis, readonly number[]>> {
  const found: Partial<Record<Axis, readonly number[]>> = { batch: batches };
  for (const axis of ['epoch', 'samples', 'time', 'relative'] as const) {
    const growth = growths[axis];
    if (growth) {
      const ascending: number[] = [];
      for (const batch of batches) {
        const at = valueOf(growth, batch);
        ascending.push(
          Math.max(
            axis === 'relative' ? Math.max(at, 0) : at,
            ascending.at(-1) ?? -Infinity
          )
        );
      }
      found[axis] = ascending;
    }
  }
  return found;
}

/** Moments, in seconds since 1970, on all axes that are known. */
export function placesOfTimes(
  { growths, started }: TrialAxes,
  times: readonly number[]
): Partial<Record<Axis, readonly number[]>> {
  const first = started ?? times[0] ?? 0;
  const found: Partial<Record<Axis, readonly number[]>> = {
    time: times,
    relative: times.map(at => Math.max(at - first, 0))
  };
  const { time } = growths;
  if (time) {
    const back = { ...time, from: time.to, to: time.from };
    // After the last report it is not known how far the trial has come.
    const batches = times.map(at => valueOf(back, at));
    Object.assign(found, {
      ...placesOf(
        {
          growths: { ...growths, time: undefined, relative: undefined },
          started
        },
        batches
      )
    });
  }
  return found;
}

/** The batches that lie between two places of an axis. */
export function batchesWithin(
  { growths }: TrialAxes,
  axis: Axis,
  [from, to]: readonly [number, number]
): [number, number] | null {
  if (axis === 'batch') {
    return whole(from, to);
  }
  const growth = growths[axis];
  if (!growth) {
    return null;
  }
  const back = { ...growth, from: growth.to, to: growth.from };
  return whole(valueOf(back, from), valueOf(back, to));
}

function whole(from: number, to: number): [number, number] {
  return [Math.max(Math.floor(from), 0), Math.max(Math.ceil(to), 0)];
}

/** Between points it grows evenly, and beyond their ends, too, where it has no bounds. */
function valueOf({ from, to, bounded = false }: Growth, at: number): number {
  if (bounded && (at <= from[0]! || at >= from.at(-1)!)) {
    return at <= from[0]! ? to[0]! : to.at(-1)!;
  }
  let [low, high] = [0, from.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle]! <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const [x, y] = [from[low]!, to[low]!];
  const span = from[high]! - x;
  return span > 0 ? y + ((at - x) / span) * (to[high]! - y) : y;
}

/** From batches to epochs, samples and times, and back, as far as they are known of a trial. Pure. */

import type { Trial } from '../../shared/model';
import type { components } from '../../shared/rest';
import type { Axis } from './series';

export type TrialClock = components['schemas']['TrialClock'];

/** Points of a function that grows, ascending in both. */
interface Growth {
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** What is known of the axes of a trial. */
export interface TrialAxes {
  /** Batches on the axes that are known; `batch` always is. */
  readonly growths: Readonly<Partial<Record<Exclude<Axis, 'batch'>, Growth>>>;
  /** When it started, in seconds since 1970. */
  readonly started: number | null;
}

/** What of a configuration says how batches, samples and epochs belong together. */
export interface Lengths {
  readonly hparams: Trial['hparams'];
  /** Of the experiment's configuration. */
  readonly recordsPerEpoch: number;
}

export function axesOfTrial(
  clock: TrialClock | undefined,
  { hparams, recordsPerEpoch }: Lengths
): TrialAxes {
  const batchSize = Number(hparams['global_batch_size']);
  const sized = Number.isFinite(batchSize) && batchSize > 0;
  const {
    batch = [],
    time = [],
    epoch = [],
    epoch_batch: ends = []
  } = clock ?? {};
  const growths: { -readonly [name in Exclude<Axis, 'batch'>]?: Growth } = {};
  if (sized) {
    growths.samples = { from: [0, 1], to: [0, batchSize] };
  }
  if (epoch.length > 0) {
    growths.epoch = { from: [0, ...ends], to: [0, ...epoch] };
  } else if (sized && recordsPerEpoch > 0) {
    growths.epoch = { from: [0, recordsPerEpoch], to: [0, batchSize] };
  }
  const started = clock?.started ?? null;
  const times = strictly(batch, time);
  if (started !== null && times.from.length > 0) {
    // Before its first report a run begins, and that is known, too.
    const first = times.from[0]!;
    const known =
      times.from.length === 1 && first > 0
        ? {
            from: [0, first],
            to: [Math.min(started, times.to[0]!), times.to[0]!]
          }
        : times;
    if (known.from.length > 1) {
      growths.time = known;
      growths.relative = {
        from: known.from,
        to: known.to.map(at => at - started)
      };
    }
  }
  return { growths, started };
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
    const back = { from: time.to, to: time.from };
    const end = time.to.at(-1)!;
    // After the last report it is not known how far the trial has come.
    const batches = times.map(at =>
      Math.max(valueOf(back, Math.min(at, end)), 0)
    );
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
  const back = { from: growth.to, to: growth.from };
  return whole(valueOf(back, from), valueOf(back, to));
}

function whole(from: number, to: number): [number, number] {
  return [Math.max(Math.floor(from), 0), Math.max(Math.ceil(to), 0)];
}

/** Between points, and beyond their ends, it grows evenly. */
function valueOf({ from, to }: Growth, at: number): number {
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

/** Only points that go on: several batches of one report have one time. */
function strictly(
  batches: readonly number[],
  times: readonly number[]
): Growth {
  const kept = batches.flatMap((batch, at) =>
    at === 0 || (batch > batches[at - 1]! && times[at]! > times[at - 1]!)
      ? [at]
      : []
  );
  return {
    from: kept.map(at => batches[at]!),
    to: kept.map(at => times[at]!)
  };
}

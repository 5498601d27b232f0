/**
 * Which of two trials, and which of two checkpoints, is better: the rule of `det_native/schema/ranking.py`, whose cases
 * the tests of both read. Pure.
 */

import type { Checkpoint, Trial } from './model';

/** Smaller for better values; what is missing, infinite or no number comes last. */
export function score(value: unknown, smallerIsBetter: boolean): number {
  return typeof value === 'number' && Number.isFinite(value)
    ? (smallerIsBetter ? 1 : -1) * value
    : Infinity;
}

/** Best first: the better value, and of equal ones the older trial. */
export function trialsBestFirst(
  trials: readonly Trial[],
  smallerIsBetter: boolean
): Trial[] {
  const rank = (each: Trial) => score(each.best_validation, smallerIsBetter);
  return trials.toSorted((one, other) =>
    ascending([rank(one), one.id], [rank(other), other.id])
  );
}

/**
 * Best first: the better value; of equal ones that of the older trial, and of its own the earlier one. Where there is no
 * value, nothing says which is better: then the last one of a trial.
 */
export function checkpointsBestFirst(
  checkpoints: readonly Checkpoint[],
  metric: string,
  smallerIsBetter: boolean
): Checkpoint[] {
  const rank = ({ metrics, trial_id, batch, created, uuid }: Checkpoint) => {
    const value = score(metrics[metric], smallerIsBetter);
    const place = value < Infinity ? batch : -batch;
    return [value, trial_id, place, created, uuid];
  };
  return checkpoints.toSorted((one, other) =>
    ascending(rank(one), rank(other))
  );
}

/** Compare part by part, as Python compares tuples. */
function ascending(
  one: ReadonlyArray<number | string>,
  other: ReadonlyArray<number | string>
): number {
  const index = one.findIndex((part, at) => part !== other[at]);
  return index < 0 ? 0 : one[index]! < other[index]! ? -1 : 1;
}

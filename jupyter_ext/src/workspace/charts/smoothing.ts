/** Smoothed curves. Pure. */

import type { Smoothing, Value } from './series';

/** Smooth values; what is a gap or infinite stays as it is, and counts for nothing. */
export function smooth(
  values: readonly Value[],
  smoothing: Smoothing
): readonly Value[] {
  switch (smoothing.kind) {
    case 'none':
      return values;
    case 'ema':
      return exponential(values, smoothing.weight);
    case 'window':
      return windowed(values, smoothing.points);
  }
}

/** Whether smoothing changes anything. */
export function smooths(smoothing: Smoothing): boolean {
  return (
    (smoothing.kind === 'ema' && smoothing.weight > 0) ||
    (smoothing.kind === 'window' && smoothing.points > 1)
  );
}

/** An average that begins at zero is too small at first; it is divided by the weights that it has by then. */
function exponential(values: readonly Value[], weight: number): Value[] {
  let average = 0;
  let weights = 0;
  return values.map(value => {
    if (value === null || !Number.isFinite(value)) {
      return value;
    }
    average = average * weight + value * (1 - weight);
    weights = weights * weight + (1 - weight);
    return weights > 0 ? average / weights : value;
  });
}

/** Mean of the points around each; at the ends of those that are there. */
function windowed(values: readonly Value[], points: number): Value[] {
  const before = Math.floor((points - 1) / 2);
  const after = Math.ceil((points - 1) / 2);
  return values.map((value, index) => {
    if (value === null || !Number.isFinite(value)) {
      return value;
    }
    let [sum, count] = [0, 0];
    const end = Math.min(index + after, values.length - 1);
    for (let at = Math.max(index - before, 0); at <= end; at++) {
      const each = values[at];
      if (typeof each === 'number' && Number.isFinite(each)) {
        sum += each;
        count += 1;
      }
    }
    return sum / count;
  });
}

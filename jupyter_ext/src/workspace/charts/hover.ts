/** What a chart tells of a place on its x axis. Pure. */

import type { Drawn } from './prepare';

/** The point of a series nearest to a place. */
export interface Hit {
  readonly drawn: Drawn;
  readonly index: number;
  readonly x: number;
  readonly value: number;
}

/** Index of the element nearest to a place; -1 of none. */
export function nearestIndex(ascending: readonly number[], at: number): number {
  let [low, high] = [0, ascending.length - 1];
  if (high < 0) {
    return -1;
  }
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return at - ascending[low]! <= ascending[high]! - at ? low : high;
}

/**
 * Of each series that reaches so far the point nearest to a place, largest value first.
 *
 * A series that has ended long before says nothing there. `reach` is how far beyond its ends a series counts, `seen`
 * the stretch that is shown: no point beyond it is told.
 */
export function hitsAt(
  drawn: readonly Drawn[],
  at: number,
  reach: number,
  seen: readonly [number, number] = [-Infinity, Infinity]
): Hit[] {
  const found = drawn.flatMap(each => hitOf(each, at, reach, seen) ?? []);
  return found.sort((one, other) => other.value - one.value);
}

function hitOf(
  drawn: Drawn,
  at: number,
  reach: number,
  seen: readonly [number, number]
): Hit | null {
  const nearest = nearestIndex(drawn.x, at);
  if (nearest < 0 || outside(drawn.x, at, reach)) {
    return null;
  }
  // Where the nearest is a gap, the neighbour that is nearer.
  for (const index of [nearest, nearest - 1, nearest + 1]) {
    const [x, value] = [drawn.x[index] ?? NaN, drawn.y[index]];
    if (typeof value === 'number' && x >= seen[0] && x <= seen[1]) {
      return { drawn, index, x, value };
    }
  }
  return null;
}

function outside(x: readonly number[], at: number, reach: number): boolean {
  return at < x[0]! - reach || at > x.at(-1)! + reach;
}

/** The newest value of a series, as bars and logs have it; null of none. */
export function lastValue({ y, series }: Drawn): number | null {
  return series.last ?? y.findLast(value => typeof value === 'number') ?? null;
}

/** The places at which any series has a point, ascending, each once: where arrow keys stop. */
export function stopsOf(drawn: readonly Drawn[]): number[] {
  return [...new Set(drawn.flatMap(({ x }) => x))].sort(
    (one, other) => one - other
  );
}

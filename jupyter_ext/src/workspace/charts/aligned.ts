/** Series on one common x, as uPlot takes them. Pure. */

import { sameNumbers } from '../../shared/plotData';
import type { Drawn } from './prepare';
import type { Value } from './series';

export type Column = Array<number | null | undefined>;

/** Which column of the data is what of which series; column 0 is x. */
export interface Aligned {
  readonly data: [number[], ...Column[]];
  readonly columns: readonly ColumnInfo[];
}

export interface ColumnInfo {
  readonly drawn: Drawn;
  readonly part: 'raw' | 'main' | 'maximum' | 'minimum';
}

/** All x of all series, ascending, each once. */
export function commonX(drawn: readonly Drawn[]): number[] {
  const [first, ...others] = drawn.map(({ x }) => x);
  if (first === undefined) {
    return [];
  }
  if (others.every(x => sameNumbers(first, x))) {
    return unique(first);
  }
  const all = new Float64Array(drawn.reduce((sum, { x }) => sum + x.length, 0));
  let at = 0;
  for (const { x } of drawn) {
    all.set(x, at);
    at += x.length;
  }
  return unique(all.sort());
}

/** Each series has what lies behind its line, its line, and the edges of its band. */
export function align(drawn: readonly Drawn[]): Aligned {
  const common = commonX(drawn);
  const columns: ColumnInfo[] = [];
  const data: Column[] = [];
  const add = (
    each: Drawn,
    part: ColumnInfo['part'],
    values: readonly Value[]
  ) => {
    columns.push({ drawn: each, part });
    data.push(place(common, each.x, values));
  };
  for (const each of drawn) {
    if (each.band) {
      add(each, 'maximum', each.band.maximum);
      add(each, 'minimum', each.band.minimum);
    }
  }
  for (const each of drawn) {
    if (each.raw) {
      add(each, 'raw', each.raw);
    }
  }
  drawn.forEach(each => add(each, 'main', each.y));
  return { data: [common, ...data], columns };
}

/** Values at their places on the common x; `undefined`, which is no gap, where a series has no point. */
function place(
  common: readonly number[],
  x: readonly number[],
  values: readonly Value[]
): Column {
  if (common.length === x.length) {
    return values as Column;
  }
  const placed: Column = new Array<Value | undefined>(common.length).fill(
    undefined
  );
  let at = 0;
  for (let index = 0; index < x.length; index++) {
    while (at < common.length - 1 && common[at]! < x[index]!) {
      at += 1;
    }
    placed[at] = values[index];
  }
  return placed;
}

function unique(ascending: ArrayLike<number>): number[] {
  const found: number[] = [];
  for (let at = 0; at < ascending.length; at++) {
    if (at === 0 || ascending[at] !== ascending[at - 1]) {
      found.push(ascending[at]!);
    }
  }
  return found;
}

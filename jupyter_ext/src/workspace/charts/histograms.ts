/** Histograms of a name over batches, on bins that they have in common. Pure. */

/** A histogram as it travels: one edge more than there are counts. */
export interface HistogramContent {
  readonly counts?: readonly number[];
  readonly edges?: readonly number[];
}

export interface HeatMap {
  readonly batches: readonly number[];
  readonly low: number;
  readonly high: number;
  /** Of each batch the share of its values in each bin, lowest bin first. */
  readonly shares: ReadonlyArray<readonly number[]>;
  /** The largest share. */
  readonly most: number;
  /** How many values each batch has; null where that differs. */
  readonly total: number | null;
}

const BINS = 48;
const LEAST_DARKNESS = 0.04;
export const MOST_MOMENTS = 120;

/** Put histograms of different edges on common bins: the values of a bin are spread evenly over it. */
export function heatMap(
  batches: readonly number[],
  contents: readonly HistogramContent[],
  bins = BINS
): HeatMap | null {
  const edges = contents.flatMap(({ edges: own = [] }) =>
    own.filter(Number.isFinite)
  );
  let [low, high] = [Infinity, -Infinity];
  for (const edge of edges) {
    low = Math.min(low, edge);
    high = Math.max(high, edge);
  }
  if (low > high) {
    return null;
  }
  if (low === high) {
    const room = Math.abs(low) / 10 || 0.5;
    [low, high] = [low - room, high + room];
  }
  const shares = contents.map(content => spread(content, low, high, bins));
  const most = shares.reduce((found, row) => Math.max(found, ...row), 0);
  const totals = contents.map(({ counts }) => totalOf(counts));
  const [total = 0] = totals;
  const same = totals.every(each => each === total);
  return { batches, low, high, shares, most, total: same ? total : null };
}

/** How dark a share of the values is, from 0 to 1: small shares are to be seen beside large ones. */
export function darkness(share: number, most: number): number {
  return share > 0 && most > 0
    ? Math.max(Math.sqrt(share / most), LEAST_DARKNESS)
    : 0;
}

/** How many values a share is, as far as that is the same in each batch. */
export function shareText({ total }: HeatMap, share: number): string {
  const percent = `${Number((share * 100).toPrecision(2))} %`;
  if (total === null) {
    return percent;
  }
  const count = Number((share * total).toPrecision(2)).toLocaleString('en');
  return `${count} (${percent})`;
}

function totalOf(counts: readonly number[] = []): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

function spread(
  { counts = [], edges = [] }: HistogramContent,
  low: number,
  high: number,
  bins: number
): number[] {
  const row = new Array<number>(bins).fill(0);
  const width = (high - low) / bins;
  const total = totalOf(counts);
  counts.forEach((count, at) => {
    const [from, to] = [edges[at] ?? NaN, edges[at + 1] ?? NaN];
    if (!(count > 0) || !Number.isFinite(from) || !Number.isFinite(to)) {
      return;
    }
    const place = (value: number) =>
      Math.min(Math.max(Math.floor((value - low) / width), 0), bins - 1);
    for (let bin = place(from); bin <= place(to); bin++) {
      const [begin, end] = [low + bin * width, low + (bin + 1) * width];
      const shared =
        to > from
          ? Math.max(Math.min(end, to) - Math.max(begin, from), 0) / (to - from)
          : bin === place(from)
            ? 1
            : 0;
      row[bin] = (row[bin] ?? 0) + (count * shared) / (total || 1);
    }
  });
  return row;
}

/** Evenly spread indices, the first and the last among them. */
export function thinned(length: number, most: number): number[] {
  if (length <= most) {
    return Array.from({ length }, (_, at) => at);
  }
  return Array.from({ length: most }, (_, at) =>
    Math.round((at * (length - 1)) / (most - 1))
  );
}

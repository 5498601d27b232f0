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
}

const BINS = 48;
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
  return { batches, low, high, shares, most };
}

function spread(
  { counts = [], edges = [] }: HistogramContent,
  low: number,
  high: number,
  bins: number
): number[] {
  const row = new Array<number>(bins).fill(0);
  const width = (high - low) / bins;
  const total = counts.reduce((sum, count) => sum + count, 0);
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

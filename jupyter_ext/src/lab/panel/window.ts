/** Which rows of a long list are drawn, and where: rows may differ in height. All lengths in CSS pixels. */

/** The rows from `first` up to, not including, `end`. */
export interface RowRange {
  first: number;
  end: number;
}

/** Where each row begins; the last entry is the height of the whole list. */
export function offsetsOf(heights: readonly number[]): number[] {
  const offsets = [0];
  for (const height of heights) {
    offsets.push(offsets[offsets.length - 1]! + height);
  }
  return offsets;
}

/**
 * The rows to draw.
 *
 * @param offsets - As from `offsetsOf`.
 * @param top - How far the list is scrolled.
 * @param height - Height of the part that is seen.
 * @param spare - How many rows more are drawn on either side.
 */
export function visibleRows(
  offsets: readonly number[],
  top: number,
  height: number,
  spare = 4
): RowRange {
  const count = offsets.length - 1;
  const first = rowAt(offsets, top);
  const last = rowAt(offsets, top + height);
  return {
    first: Math.max(0, first - spare),
    end: Math.min(count, last + 1 + spare)
  };
}

/** How far to scroll so that a row is seen whole; the present value if it already is. */
export function scrollTo(
  offsets: readonly number[],
  row: number,
  top: number,
  height: number
): number {
  const begin = offsets[row] ?? 0;
  const end = offsets[row + 1] ?? begin;
  if (begin < top) {
    return begin;
  }
  return end > top + height ? Math.max(0, end - height) : top;
}

/** The row to go to from `row` when a key is pressed; null if the key moves nothing. */
export function rowAfterKey(
  key: string,
  row: number,
  count: number,
  page: number
): number | null {
  const moves: Record<string, number> = {
    ArrowDown: row + 1,
    ArrowUp: row - 1,
    PageDown: row + page,
    PageUp: row - page,
    Home: 0,
    End: count - 1
  };
  const target = moves[key];
  if (target === undefined || count === 0) {
    return null;
  }
  return Math.min(count - 1, Math.max(0, target));
}

function rowAt(offsets: readonly number[], position: number): number {
  let low = 0;
  let high = Math.max(0, offsets.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle]! <= position) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

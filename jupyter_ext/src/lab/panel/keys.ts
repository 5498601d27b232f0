/** Where the keyboard goes in a list. */

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

/** Cells as one text, to be compared. Pure. */

const BETWEEN = '\n\n# %%\n';

export function joinedCells(cells: readonly string[]): string {
  return cells.map(cell => cell.trimEnd()).join(BETWEEN);
}

/** Nothing that an experiment would have: empty, or only commands of the notebook such as `%matplotlib inline`. */
export function isMagicOnly(cell: string): boolean {
  return cell
    .split('\n')
    .every(line => line.trim() === '' || /^\s*[%!?]/.test(line));
}

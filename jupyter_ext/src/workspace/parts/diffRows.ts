/** Rows of a comparison of two texts: side by side or one below the other, unchanged stretches folded. Pure. */

import { diffArrays } from 'diff';

/** A line with its number, from 1. */
export interface DiffLine {
  readonly number: number;
  readonly text: string;
}

/** A row side by side: lines that are equal, or one that took the place of another; null where there is none. */
export interface DiffRow {
  readonly kind: 'same' | 'changed';
  readonly before: DiffLine | null;
  readonly after: DiffLine | null;
}

/** Rows that are shown, or unchanged ones that are folded. */
export interface DiffStretch {
  readonly folded: boolean;
  readonly rows: readonly DiffRow[];
}

export interface DiffCounts {
  readonly removed: number;
  readonly added: number;
}

/** So many unchanged lines stay around each change. */
const CONTEXT = 3;
/** Fewer unchanged lines than these are not worth a fold. */
const LEAST_FOLDED = 4;
/** Texts that differ everywhere are not compared line by line for longer. */
const TIMEOUT_MILLISECONDS = 400;

/** Compare two texts by lines. */
export function diffRows(before: string, after: string): DiffRow[] {
  const old = linesOf(before);
  const now = linesOf(after);
  const least = Math.min(old.length, now.length);
  let head = 0;
  while (head < least && old[head] === now[head]) {
    head += 1;
  }
  let tail = 0;
  while (
    tail < least - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  ) {
    tail += 1;
  }
  const rows: DiffRow[] = [];
  let left = 0;
  let right = 0;
  const same = (count: number) => {
    for (let at = 0; at < count; at += 1, left += 1, right += 1) {
      rows.push({
        kind: 'same',
        before: { number: left + 1, text: old[left]! },
        after: { number: right + 1, text: now[right]! }
      });
    }
  };
  const changed = (removed: number, added: number) => {
    for (let at = 0; at < Math.max(removed, added); at += 1) {
      rows.push({
        kind: 'changed',
        before:
          at < removed
            ? { number: left + at + 1, text: old[left + at]! }
            : null,
        after:
          at < added ? { number: right + at + 1, text: now[right + at]! } : null
      });
    }
    left += removed;
    right += added;
  };
  same(head);
  const middle = diffArrays(
    old.slice(head, old.length - tail),
    now.slice(head, now.length - tail),
    { timeout: TIMEOUT_MILLISECONDS }
  ) ?? [
    // Too different: one block takes the place of the other.
    { count: old.length - tail - head, removed: true, added: false },
    { count: now.length - tail - head, removed: false, added: true }
  ];
  let removed = 0;
  let added = 0;
  for (const part of middle) {
    if (part.removed) {
      removed += part.count;
    } else if (part.added) {
      added += part.count;
    } else {
      changed(removed, added);
      removed = added = 0;
      same(part.count);
    }
  }
  changed(removed, added);
  same(tail);
  return rows;
}

/** Fold the unchanged rows that are far from any change. */
export function foldRows(rows: readonly DiffRow[]): DiffStretch[] {
  const near = new Uint8Array(rows.length);
  rows.forEach(({ kind }, at) => {
    if (kind === 'changed') {
      near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
    }
  });
  const stretches: DiffStretch[] = [];
  let start = 0;
  for (let at = 1; at <= rows.length; at += 1) {
    if (at === rows.length || near[at] !== near[start]) {
      const stretch = rows.slice(start, at);
      const folded = near[start] === 0 && stretch.length >= LEAST_FOLDED;
      const last = stretches.at(-1);
      if (last !== undefined && !folded && !last.folded) {
        stretches[stretches.length - 1] = {
          folded,
          rows: [...last.rows, ...stretch]
        };
      } else {
        stretches.push({ folded, rows: stretch });
      }
      start = at;
    }
  }
  return stretches;
}

/** How many lines went and came. */
export function countChanges(rows: readonly DiffRow[]): DiffCounts {
  const changed = rows.filter(({ kind }) => kind === 'changed');
  return {
    removed: changed.filter(({ before }) => before !== null).length,
    added: changed.filter(({ after }) => after !== null).length
  };
}

/** A line of a unified view. */
export interface UnifiedLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly before: number | null;
  readonly after: number | null;
  readonly text: string;
}

/** One below the other: of each change first what went, then what came. */
export function unifiedLines(rows: readonly DiffRow[]): UnifiedLine[] {
  const lines: UnifiedLine[] = [];
  let added: UnifiedLine[] = [];
  const flush = () => {
    lines.push(...added);
    added = [];
  };
  for (const { kind, before, after } of rows) {
    if (kind === 'same') {
      flush();
      lines.push({
        kind,
        before: before?.number ?? null,
        after: after?.number ?? null,
        text: after?.text ?? ''
      });
      continue;
    }
    if (before) {
      lines.push({
        kind: 'removed',
        before: before.number,
        after: null,
        text: before.text
      });
    }
    if (after) {
      added.push({
        kind: 'added',
        before: null,
        after: after.number,
        text: after.text
      });
    }
  }
  flush();
  return lines;
}

/** An empty text has no line, and a line end at the very end begins none. */
function linesOf(text: string): string[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  if (lines.at(-1) === '') {
    lines.pop();
  }
  return lines;
}

/**
 * Notes that are written and not saved yet: they outlive a change of tab, a reload and the end of a session.
 *
 * Kept in this browser, read with care: its storage may be broken, full or forbidden. Then a draft lasts as long as
 * the page.
 */

import type { ExperimentDetail } from '../../shared/model';

/** A text under way, and the notes that it began with. */
export interface Draft {
  readonly text: string;
  readonly base: string;
}

const PREFIX = 'det-native.notes.';
const inMemory = new Map<string, string>();

/** Experiments of two masters may share a number, but not the moment in which they were made. */
function keyOf({ id, created }: ExperimentDetail): string {
  return `${PREFIX}${id}.${created}`;
}

/** The draft of an experiment's notes; null for none. */
export function keptDraft(experiment: ExperimentDetail): Draft | null {
  const key = keyOf(experiment);
  try {
    const kept = inMemory.get(key) ?? localStorage.getItem(key);
    const found: unknown = JSON.parse(kept ?? 'null');
    const { text, base } = (found ?? {}) as Partial<Record<string, unknown>>;
    return typeof text === 'string' && typeof base === 'string'
      ? { text, base }
      : null;
  } catch {
    return null; // forbidden, or not written by this page
  }
}

/** Keep a draft until `dropDraft`; without a change to its notes there is nothing to keep. */
export function keepDraft(experiment: ExperimentDetail, draft: Draft): void {
  if (draft.text === draft.base) {
    dropDraft(experiment);
    return;
  }
  const key = keyOf(experiment);
  const { text, base } = draft;
  const kept = JSON.stringify({ text, base });
  try {
    localStorage.setItem(key, kept);
    inMemory.delete(key);
  } catch {
    inMemory.set(key, kept);
  }
}

export function dropDraft(experiment: ExperimentDetail): void {
  const key = keyOf(experiment);
  inMemory.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // Forbidden: there is nothing to remove.
  }
}

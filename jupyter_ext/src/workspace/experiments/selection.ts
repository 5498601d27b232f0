/** Which experiments are selected. Pure: each change gives another set. */

import type { ExperimentId } from '../../shared/model';

export interface Selection {
  readonly ids: ReadonlySet<ExperimentId>;
  /** Where a range begins: what was toggled last. */
  readonly anchor: ExperimentId | null;
}

export const NOTHING: Selection = { ids: new Set(), anchor: null };

/** Select one more, or one less. */
export function toggled(selection: Selection, id: ExperimentId): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) {
    ids.add(id);
  }
  return { ids, anchor: id };
}

/** Select everything from what was toggled last to this, in the order of the table. */
export function extended(
  selection: Selection,
  order: readonly ExperimentId[],
  id: ExperimentId
): Selection {
  const to = order.indexOf(id);
  const from = selection.anchor === null ? to : order.indexOf(selection.anchor);
  if (to < 0 || from < 0) {
    return toggled(selection, id);
  }
  const range = order.slice(Math.min(from, to), Math.max(from, to) + 1);
  return {
    ids: new Set([...selection.ids, ...range]),
    anchor: selection.anchor
  };
}

/** Select all, or nothing where all are selected. */
export function allOrNone(
  selection: Selection,
  order: readonly ExperimentId[]
): Selection {
  const all = order.every(id => selection.ids.has(id));
  return all ? NOTHING : { ids: new Set(order), anchor: null };
}

/** Without what is not in the table any more, deleted in another tab, for instance. */
export function pruned(
  selection: Selection,
  order: readonly ExperimentId[]
): Selection {
  const there = new Set(order);
  const ids = [...selection.ids].filter(id => there.has(id));
  return ids.length === selection.ids.size
    ? selection
    : { ids: new Set(ids), anchor: selection.anchor };
}

/** What stands below each other in the table: experiments, or groups with those of the open ones. Pure. */

import type { ExperimentId } from '../../shared/model';
import type { Group } from './rows';

export type Item =
  | { readonly kind: 'row'; readonly key: string; readonly id: ExperimentId }
  | {
      readonly kind: 'group';
      readonly key: string;
      readonly group: Group;
      readonly open: boolean;
    };

export function rowItems(ids: readonly ExperimentId[]): Item[] {
  return ids.map(id => ({ kind: 'row', key: String(id), id }));
}

export function groupItems(
  groups: readonly Group[],
  open: ReadonlySet<string>
): Item[] {
  return groups.flatMap(group => {
    const key = groupKey(group);
    const isOpen = open.has(key);
    const head: Item = { kind: 'group', key, group, open: isOpen };
    return isOpen
      ? [
          head,
          ...group.ids.map((id): Item => ({
            kind: 'row',
            key: `${key} ${id}`,
            id
          }))
        ]
      : [head];
  });
}

export function groupKey({ value }: Group): string {
  return `group ${JSON.stringify(value)}`;
}

/** The experiments among items, in order, each once. */
export function idsOf(items: readonly Item[]): ExperimentId[] {
  return [
    ...new Set(
      items.flatMap(item => (item.kind === 'row' ? [item.id] : item.group.ids))
    )
  ];
}

/** By how many rows the first one that is seen has moved, so that the table can move with it. */
export function shift(
  before: readonly Item[],
  now: readonly Item[],
  first: number
): number {
  for (let at = first; at < Math.min(first + 20, before.length); at += 1) {
    const key = before[at]!.key;
    const found =
      now[at]?.key === key ? at : now.findIndex(each => each.key === key);
    if (found >= 0) {
      return found - at;
    }
  }
  return 0;
}

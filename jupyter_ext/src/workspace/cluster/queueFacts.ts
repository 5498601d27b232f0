/** What the queue says: who is in which group, when slots will be free, and which priorities make an order. Pure. */

import type { components } from '../../generated/rest';

export type Queue = components['schemas']['Queue'];
export type QueueEntry = components['schemas']['QueueEntry'];

export const LOWEST = 1;
export const HIGHEST = 99;

/** Who trains, who waits in which order, and who is paused. */
export interface Groups {
  readonly running: readonly QueueEntry[];
  readonly waiting: readonly QueueEntry[];
  readonly paused: readonly QueueEntry[];
}

export function groupsOf({ entries }: Queue): Groups {
  const running = entries.filter(isRunning);
  const rest = entries.filter(entry => !isRunning(entry));
  return {
    running,
    waiting: rest.filter(({ state }) => state !== 'PAUSED'),
    paused: rest.filter(({ state }) => state === 'PAUSED')
  };
}

function isRunning({ held = [], running }: QueueEntry): boolean {
  return held.length > 0 || running > 0;
}

/**
 * Seconds until each experiment that waits will probably have its slots, by its id; null where that cannot be said.
 *
 * Those before it get theirs first, and keep them: how long they will take nobody knows before they begin.
 */
export function startTimes(queue: Queue): ReadonlyMap<number, number | null> {
  const { running, waiting } = groupsOf(queue);
  const ends = running
    .map(({ held = [], seconds_left: left }) => ({
      slots: held.length,
      at: left ?? Number.POSITIVE_INFINITY
    }))
    .toSorted((one, other) => one.at - other.at);
  const found = new Map<number, number | null>();
  let [free, now] = [queue.free, 0];
  for (const entry of waiting) {
    while (free < entry.slots_per_trial && ends.length > 0) {
      const { slots, at } = ends.shift()!;
      free += slots;
      now = Math.max(now, at);
    }
    const enough = free >= entry.slots_per_trial && Number.isFinite(now);
    found.set(entry.id, enough ? now : null);
    free -= enough ? entry.slots_per_trial : free;
  }
  return found;
}

/**
 * The priorities to set, by experiment, that bring one of those that wait to another place; null where none is left.
 *
 * @param waiting - In their present order.
 * @param from - Place of the one to move, from 0.
 * @param to - Its place then.
 */
export function prioritiesAfter(
  waiting: readonly Pick<QueueEntry, 'id' | 'priority'>[],
  from: number,
  to: number
): ReadonlyMap<number, number> | null {
  const moved = waiting[from];
  if (moved === undefined || from === to) {
    return new Map();
  }
  const order = waiting.toSpliced(from, 1).toSpliced(to, 0, moved);
  const priorities = order.map(({ priority }) => priority);
  const before = priorities[to - 1];
  const after = priorities[to + 1];
  priorities[to] =
    before === undefined ? Math.max((after ?? 0) - 1, LOWEST) : before + 1;
  // Among equals the scheduler takes turns: only different priorities make an order.
  for (let at = to + 1; at < order.length; at++) {
    if (priorities[at]! > priorities[at - 1]!) {
      break;
    }
    priorities[at] = priorities[at - 1]! + 1;
  }
  if (priorities.some(priority => priority > HIGHEST)) {
    return null;
  }
  return new Map(
    order
      .map(({ id }, at): [number, number] => [id, priorities[at]!])
      .filter(([, priority], at) => priority !== order[at]!.priority)
  );
}

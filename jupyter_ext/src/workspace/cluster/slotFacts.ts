/** How much slots are used, by what the processes on them have measured last. Pure. */

import type { SlotInfo, SystemSample } from '../../shared/model';

/** What is known of a slot's use; missing where nothing measures it. */
export interface SlotUse {
  /** From 0 to 100. */
  readonly percent?: number;
  /** Bytes. */
  readonly memory?: number;
}

/**
 * The use of each slot that a trial holds.
 *
 * Each process of a trial has one of its slots, in their order. It names its own GPU `gpu0` or by the slot's number;
 * without a GPU the processors and the memory of the process count.
 *
 * @param samples - Of the trials, by their ids.
 */
export function slotUses(
  slots: readonly SlotInfo[],
  samples: ReadonlyMap<number, readonly SystemSample[]>
): ReadonlyMap<string, SlotUse> {
  const found = new Map<string, SlotUse>();
  const ranks = new Map<number, number>();
  for (const slot of slots) {
    const trial = slot.trial_id;
    if (typeof trial !== 'number') {
      continue;
    }
    const rank = ranks.get(trial) ?? 0;
    ranks.set(trial, rank + 1);
    const metrics = latest(samples.get(trial) ?? [], rank);
    if (metrics !== null) {
      found.set(slot.id, useOf(metrics, slot.device === 'cuda'));
    }
  }
  return found;
}

function latest(
  samples: readonly SystemSample[],
  rank: number
): Readonly<Record<string, number>> | null {
  // A trial in one process on several slots has the rank 0 only.
  const own = samples.filter(sample => sample.rank === rank);
  const last = (own.length > 0 ? own : samples).toSorted(
    (one, other) => one.time - other.time
  );
  return last.at(-1)?.metrics ?? null;
}

function useOf(
  metrics: Readonly<Record<string, number>>,
  gpu: boolean
): SlotUse {
  const value = (pattern: RegExp) => {
    const name = Object.keys(metrics).find(key => pattern.test(key));
    return name === undefined ? undefined : metrics[name];
  };
  const percent = value(gpu ? /^gpu\d+_percent$/ : /^cpu_percent$/);
  const memory = value(gpu ? /^gpu\d+_memory_bytes$/ : /^memory_bytes$/);
  return {
    ...(percent !== undefined && { percent }),
    ...(memory !== undefined && { memory })
  };
}

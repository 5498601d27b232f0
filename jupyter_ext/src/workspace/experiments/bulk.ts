/** What is done with several experiments: each by itself, so that one that is refused does not stop the others. */

import type { components } from '../../generated/rest';
import type { Api } from '../../shared/api';
import type { ExperimentId } from '../../shared/model';
import {
  actOn,
  changeExperiment,
  deleteExperiment,
  deletionOf
} from '../../shared/requests';
import { asError } from '../data/useLoad';

export type Deletion = components['schemas']['Deletion'];

/** Requests at the same time. */
const AT_ONCE = 4;
/** Compared side by side, no more. */
export const MOST_COMPARED = 50;

export interface Failure {
  readonly id: ExperimentId;
  readonly message: string;
}

export interface Outcome<T = unknown> {
  readonly done: ReadonlyArray<{ id: ExperimentId; answer: T }>;
  readonly failed: readonly Failure[];
}

/** Do something with each; `progress` is told how many are done with. */
export async function forEach<T>(
  ids: readonly ExperimentId[],
  action: (id: ExperimentId) => Promise<T>,
  progress: (finished: number) => void = () => undefined
): Promise<Outcome<T>> {
  const done: { id: ExperimentId; answer: T }[] = [];
  const failed: Failure[] = [];
  const waiting = [...ids];
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        done.push({ id, answer: await action(id) });
      } catch (error) {
        const { message, remedy } = asError(error);
        failed.push({
          id,
          message: [message, remedy].filter(Boolean).join(' ')
        });
      }
      progress(done.length + failed.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const place = new Map(ids.map((id, at) => [id, at]));
  const byPlace = (one: { id: ExperimentId }, other: { id: ExperimentId }) =>
    place.get(one.id)! - place.get(other.id)!;
  return { done: done.sort(byPlace), failed: failed.sort(byPlace) };
}

/** Actions of the bar, by what is asked of the master. */
export class BulkActions {
  constructor(private readonly _api: Api) {}

  act(id: ExperimentId, action: 'stop' | 'pause' | 'resume'): Promise<unknown> {
    return actOn(this._api, id, action);
  }

  change(
    id: ExperimentId,
    change: components['schemas']['ExperimentChange']
  ): Promise<unknown> {
    return changeExperiment(this._api, id, change);
  }

  deletion(id: ExperimentId): Promise<Deletion> {
    return deletionOf(this._api, id);
  }

  delete(id: ExperimentId): Promise<Deletion> {
    return deleteExperiment(this._api, id);
  }
}

/** Bytes that a deletion frees. */
export function freed(deletion: Deletion): number {
  const { checkpoint_bytes, blob_bytes, event_file_bytes, output_bytes } =
    deletion;
  return (
    (checkpoint_bytes ?? 0) +
    (blob_bytes ?? 0) +
    (event_file_bytes ?? 0) +
    (output_bytes ?? 0)
  );
}

/** `3 experiments`, `1 experiment`. */
export function several(count: number): string {
  return count === 1
    ? '1 experiment'
    : `${count.toLocaleString('en-US')} experiments`;
}

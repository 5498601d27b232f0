/** Routes of the Jupyter server extension, and how it is asked for what the master's interface names. Pure. */

import type { paths } from '../generated/rest';
import type { Address } from './api';
import type { ExperimentId } from './model';

const MASTER = '/api/v1/';

/** The stream that tells of the master's experiments. */
export const MASTER_EVENTS = '/api/v1/events' satisfies keyof paths;

/** What the server extension answers itself: below `<base>/det-native/api/`. */
export type ExtensionRoute =
  | 'status'
  | 'start'
  | 'notebook-runs'
  | 'notebook-runs/describe'
  | `notebook-runs/${number}/${'stop' | 'open'}`
  | `experiments/${number}/notebook/open`
  | `saved/${'experiments' | 'trials'}/${number}`;

/** The id in an argument of a command, or in an output that was saved; null if it is none. */
export function asExperimentId(value: unknown): ExperimentId | null {
  return Number.isSafeInteger(value) && (value as number) > 0
    ? (value as number)
    : null;
}

/** `#12`: how an experiment is called in a list. */
export function shortName(id: ExperimentId): string {
  return `#${id}`;
}

/** What a notebook keeps of an experiment, or of a trial where that is not 0. */
export function savedRoute(id: ExperimentId, trialId: number): ExtensionRoute {
  return trialId > 0 ? `saved/trials/${trialId}` : `saved/experiments/${id}`;
}

/** Where the server extension has a route of the master: `/api/v1/trials/3/logs` is its `master/trials/3/logs`. */
export function extensionPath(address: Address): string {
  return address.startsWith(MASTER)
    ? `master/${address.slice(MASTER.length)}`
    : address;
}

/** Routes of the Jupyter server extension, and how it is asked for what the master's interface names. Pure. */

import type { paths } from '../generated/rest';
import type { Address } from './api';
import type { ExperimentId } from './model';

const MASTER = '/api/v1/';

/** The stream that tells of the master's experiments, and that of local runs. */
export const MASTER_EVENTS = '/api/v1/events' satisfies keyof paths;
export const LOCAL_EVENTS = 'local/events';
export type EventsRoute = typeof MASTER_EVENTS | typeof LOCAL_EVENTS;

/** What the server extension answers itself: below `<base>/det-native/api/`. */
export type ExtensionRoute =
  | 'status'
  | 'start'
  | 'notebook-runs'
  | 'notebook-runs/describe'
  | `notebook-runs/${'there/' | ''}${number}/${'stop' | 'open'}`
  | `experiments/${number}/notebook/open`
  | 'local/experiments'
  | `saved/${'experiments' | 'trials' | 'local'}/${string}`;

/** Whether it is a run that a kernel or a script trains by itself. */
export function isLocalId(id: ExperimentId): id is string {
  return typeof id === 'string';
}

/** The id in an argument of a command, or in an output that was saved; null if it is none. */
export function asExperimentId(value: unknown): ExperimentId | null {
  const local = typeof value === 'string' && /^local-\d+$/.test(value);
  return local || typeof value === 'number' ? value : null;
}

/** `#12`, `local-3`: how an experiment is called in a list. */
export function shortName(id: ExperimentId): string {
  return isLocalId(id) ? id : `#${id}`;
}

/** A trial in an address: its number on the master, or `local-3.1`. */
export type TrialKey = number | `${string}.${number}`;

/** Names a trial in an address; those of a local run are numbered in it. */
export function trialKey(id: ExperimentId, trialId: number): TrialKey {
  return isLocalId(id) ? `${id}.${trialId}` : trialId;
}

/** Names a checkpoint in an address: on the master, or `local-3.<uuid>`. */
export function checkpointKey(id: ExperimentId, uuid: string): string {
  return isLocalId(id) ? `${id}.${uuid}` : uuid;
}

/** The stream that tells of an experiment. */
export function eventsRoute(id: ExperimentId): EventsRoute {
  return isLocalId(id) ? LOCAL_EVENTS : MASTER_EVENTS;
}

/** What a notebook keeps of an experiment, or of a trial where that is not 0: `saved/local/3`. */
export function savedRoute(id: ExperimentId, trialId: number): ExtensionRoute {
  if (isLocalId(id)) {
    const run = id.slice('local-'.length);
    return `saved/local/${trialId > 0 ? `${run}/${trialId}` : run}`;
  }
  return trialId > 0 ? `saved/trials/${trialId}` : `saved/experiments/${id}`;
}

const LOCAL_PART =
  /^(experiments|trials|checkpoints)\/local-(\d+)(?:\.([^/?]+))?/;

/**
 * Where the server extension has a route of the master: `master/trials/3/logs`. It answers itself for the runs of this
 * machine: `/api/v1/trials/local-3.1/logs` is its `local/experiments/3/trials/1/logs`.
 */
export function extensionPath(address: Address | EventsRoute): string {
  if (!address.startsWith(MASTER)) {
    return address;
  }
  const path = address.slice(MASTER.length);
  const local = LOCAL_PART.exec(path);
  if (local === null) {
    return `master/${path}`;
  }
  const [whole, kind, run, part] = local;
  const owner = `local/experiments/${run}`;
  const thing = part === undefined ? owner : `${owner}/${kind}/${part}`;
  return thing + path.slice(whole.length);
}

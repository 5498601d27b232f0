/** Where the server extension tells of an experiment: of the master's, and of the runs of this machine's own. Pure. */

import type { ExperimentId } from './model';

const LOCAL = 'local-';

/** The stream that tells of the master's experiments, and that of local runs. */
export const MASTER_EVENTS = 'master/events';
export const LOCAL_EVENTS = 'local/events';

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

/** Path of an experiment. */
export function experimentPath(id: ExperimentId): string {
  return isLocalId(id)
    ? `local/experiments/${id.slice(LOCAL.length)}`
    : `master/experiments/${id}`;
}

/** Path of a trial; those of a local run are numbered in it. */
export function trialPath(id: ExperimentId, trialId: number): string {
  return isLocalId(id)
    ? `${experimentPath(id)}/trials/${trialId}`
    : `master/trials/${trialId}`;
}

/** Path of what a trial has logged by a number. */
export function mediumPath(
  id: ExperimentId,
  trialId: number,
  mediumId: number
): string {
  return `${trialPath(id, trialId)}/media/${mediumId}/content`;
}

/** The stream that tells of an experiment. */
export function eventsPath(id: ExperimentId): string {
  return isLocalId(id) ? LOCAL_EVENTS : MASTER_EVENTS;
}

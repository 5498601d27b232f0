/** Numbers of trials inside their experiment, from 1, which people read; ids are for requests. */

import type { ExperimentView, Trial } from './model';

/** The number of a trial; its id where a version of before does not tell it. */
export function trialNumber({ id, number }: Pick<Trial, 'id' | 'number'>) {
  return number || id;
}

/** The number of the trial with an id; the id itself while nothing else is known of it. */
export function numberOf(
  trials: ExperimentView['trials'],
  trialId: number
): number {
  const trial = trials.find(({ id }) => id === trialId);
  return trial ? trialNumber(trial) : trialId;
}

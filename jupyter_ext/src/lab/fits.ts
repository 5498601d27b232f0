/** Which action fits which experiment. */
import { type Action, type Experiment, isTerminal } from '../shared/model';

/** Whether an action fits the state of an experiment. */
export function fits(action: Action, experiment: Experiment): boolean {
  const { local } = experiment;
  switch (action) {
    case 'pause':
      return experiment.state === 'ACTIVE' && local === undefined;
    case 'activate':
      return experiment.state === 'PAUSED';
    case 'kill':
      return (
        !isTerminal(experiment.state) &&
        local?.can_stop !== false &&
        !experiment.state.startsWith('STOPPING')
      );
  }
}

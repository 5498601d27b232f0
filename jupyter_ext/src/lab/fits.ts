/** Which action fits which experiment. */
import { type Action, type Experiment, isTerminal } from '../shared/model';

/** Whether an action fits the state of an experiment. */
export function fits(action: Action, experiment: Experiment): boolean {
  switch (action) {
    case 'pause':
      return experiment.state === 'ACTIVE' && !experiment.in_kernel;
    case 'resume':
      return experiment.state === 'PAUSED';
    case 'stop':
      return (
        !isTerminal(experiment.state) &&
        !experiment.state.startsWith('STOPPING')
      );
    case 'kill':
      // What trains in a kernel is stopped there; a second way to end it says nothing more.
      return !isTerminal(experiment.state) && !experiment.in_kernel;
  }
}

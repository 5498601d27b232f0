/** Rows of the table of experiments for the tests. */
import type { Experiment } from '../../src/shared/model';
import type {
  ExperimentNames,
  Row
} from '../../src/workspace/experiments/rows';
import { experiment } from '../shared/examples';

export function row(change: Partial<Experiment>): Row {
  const metric = (
    name: string,
    last: number,
    minimum: number,
    maximum: number
  ) =>
    ({
      kind: 'validation',
      name,
      last_batch: 9,
      last,
      minimum,
      maximum
    }) as const;
  return {
    experiment: experiment({
      name: `digits ${String(change.id)}`,
      config: {
        resources: { slots_per_trial: 2 },
        searcher: { name: 'random' }
      },
      ...change
    }),
    owner: 'ada',
    notes: 'First line',
    size: 1_250_000,
    hparams: { lr: 0.1, optimizer: { name: 'adam' } },
    metrics: [
      metric('val_accuracy', 0.8, 0.1, 0.9),
      metric('loss', 0.3, 0.2, 2)
    ]
  };
}

export const NAMES: ExperimentNames = {
  metrics: [
    { name: 'val_loss', count: 9 },
    { name: 'val loss', count: 1 }
  ],
  hyperparameters: [
    { name: 'lr', count: 9 },
    { name: 'optimizer.name', count: 2 }
  ],
  labels: [
    { name: 'baseline', count: 4 },
    { name: 'with space', count: 1 }
  ],
  projects: [{ name: 'vision', count: 3 }],
  names: [{ name: 'digits', count: 3 }],
  users: [{ name: 'ada', count: 9 }],
  frameworks: [{ name: 'torch', count: 9 }],
  experiments: 9
};

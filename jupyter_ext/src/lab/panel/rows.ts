/** What the list says of an experiment, in the few characters that 250 pixels have. */
import {
  capitalised,
  cellName,
  formatAgo,
  formatCount,
  formatLeft,
  formatPercent,
  formatValue
} from '../../shared/format';
import {
  type Experiment,
  type ExperimentId,
  isTerminal,
  type UserErrorInfo
} from '../../shared/model';
import { shortName } from '../../shared/paths';
import { experimentStateText, TEXTS } from '../../shared/texts';
import type { Shape } from '../icons';

/** A row of the list. Texts may be empty. */
export interface Row {
  id: ExperimentId;
  /** `#12` */
  number: string;
  name: string;
  shape: Shape;
  /** Value of the searcher's metric, best so far. */
  metric: string;
  /** `↓ val_loss`: the metric, and that lower is better. */
  metricName: string;
  /** State, progress and time. */
  detail: string;
  /** By what it differs from the run before it. */
  changes: string;
  /** Why it failed, in one line. */
  problem: string;
  /** From 0 to 1; null where it says nothing any more. */
  progress: number | null;
  /** For the pointer that rests on the row. */
  title: string;
  /** For screen readers. */
  label: string;
}

const SHAPES: Readonly<Record<string, Shape>> = {
  QUEUED: 'running',
  ACTIVE: 'running',
  PAUSED: 'paused',
  STOPPING_CANCELED: 'running',
  STOPPING_COMPLETED: 'running',
  STOPPING_ERROR: 'failed',
  COMPLETED: 'done',
  ERROR: 'failed'
};

/**
 * Put an experiment into a row.
 *
 * @param now - Milliseconds since 1970.
 * @param changes - By what it differs from the run before it.
 */
export function rowOf(experiment: Experiment, now: number, changes = ''): Row {
  const { word, note = '' } = experimentStateText(experiment);
  const known = experiment.best_validation !== null;
  const metric = known ? formatValue(experiment.best_validation) : '';
  const detail = detailOf(experiment, word, now);
  const problem =
    experiment.error === null
      ? note || (experiment.warning ?? '')
      : problemLine(experiment.error);
  const lower = experiment.smaller_is_better;
  const direction = `${lower ? 'lower' : 'higher'} is better`;
  const best = known ? `best ${experiment.metric} ${metric}, ${direction}` : '';
  return {
    id: experiment.id,
    number: shortName(experiment.id),
    name: experiment.name,
    shape: shapeOf(experiment, word, note),
    metric,
    metricName: known ? `${lower ? '↓' : '↑'} ${experiment.metric}` : '',
    detail,
    changes,
    problem,
    progress: isTerminal(experiment.state) ? null : experiment.progress,
    title: filled(
      `Experiment ${experiment.id}: ${experiment.name}`,
      changes,
      detail,
      best,
      problem
    ).join('\n'),
    label: filled(
      `Experiment ${experiment.id}, ${experiment.name}`,
      changes,
      detail,
      best,
      problem
    ).join(', ')
  };
}

function shapeOf({ state }: Experiment, word: string, note: string): Shape {
  if (word === 'Queued') {
    return 'waiting';
  }
  // A tick alone would say that all is well.
  if (note !== '') {
    return state === 'COMPLETED' ? 'partly' : 'waiting';
  }
  return SHAPES[state] ?? 'stopped';
}

/** What went wrong, in one short line, and the cell or the batch it came from. */
export function problemLine(error: UserErrorInfo): string {
  const [message] = error.message.split('\n');
  const said = filled(error.type, message ?? '').join(': ');
  if (typeof error.cell === 'number') {
    return `${capitalised(cellName(error.cell, error.prompts))}: ${said}`;
  }
  return error.batch && !error.traceback
    ? `At batch ${formatCount(error.batch)}: ${said}`
    : said;
}

function detailOf(experiment: Experiment, word: string, now: number): string {
  // The master begins the name of a test with a mark of its own.
  const test =
    experiment.test && !experiment.name.startsWith('[test-mode]') ? 'test' : '';
  const place = experiment.in_kernel ? TEXTS.inKernel : '';
  const said = filled(word, place, test);
  if (isTerminal(experiment.state)) {
    const ended = experiment.ended ?? experiment.created;
    return [...said, formatAgo(ended, now)].join(' · ');
  }
  if (word === 'Queued') {
    return [...said, formatAgo(experiment.created, now)].join(' · ');
  }
  const left = experiment.seconds_left ?? null;
  const time = left === null ? '' : `${formatLeft(left)} left`;
  return filled(...said, formatPercent(experiment.progress), time).join(' · ');
}

function filled(...texts: string[]): string[] {
  return texts.filter(text => text !== '');
}

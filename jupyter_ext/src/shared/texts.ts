/** The words for every state, in one place. */

import { formatClock } from './format';
import type {
  Connection,
  Experiment,
  ExperimentView,
  MasterStatus,
  Trial
} from './model';

/** A word for a state, and the kind of its colour. */
export interface StateText {
  readonly word: string;
  readonly tone: 'active' | 'waiting' | 'good' | 'bad' | 'neutral';
  /** What the word alone would hide. */
  readonly note?: string;
}

const EXPERIMENT_TEXTS: Readonly<Record<string, StateText>> = {
  QUEUED: { word: 'Queued', tone: 'waiting' },
  ACTIVE: { word: 'Running', tone: 'active' },
  PAUSED: { word: 'Paused', tone: 'waiting' },
  STOPPING_CANCELED: { word: 'Stopping', tone: 'waiting' },
  STOPPING_COMPLETED: { word: 'Finishing', tone: 'active' },
  STOPPING_ERROR: { word: 'Failing', tone: 'bad' },
  CANCELED: { word: 'Stopped', tone: 'neutral' },
  COMPLETED: { word: 'Completed', tone: 'good' },
  ERROR: { word: 'Failed', tone: 'bad' },
  DELETED: { word: 'Deleted', tone: 'neutral' }
};

const TRIAL_TEXTS: Readonly<Record<string, StateText>> = {
  QUEUED: { word: 'Queued', tone: 'waiting' },
  RUNNING: { word: 'Running', tone: 'active' },
  CANCELED: { word: 'Stopped', tone: 'neutral' },
  COMPLETED: { word: 'Completed', tone: 'good' },
  ERROR: { word: 'Failed', tone: 'bad' }
};

/** Word for an experiment: one that is active without slots, or has not got any yet, is queued; trials of a search may fail. */
export function experimentStateText(
  experiment: Pick<Experiment, 'state'> &
    Partial<
      Pick<
        Experiment,
        'started' | 'trials' | 'failed_trials' | 'waits_for' | 'notice'
      >
    >
): StateText {
  const { waits_for: slots } = experiment;
  if (experiment.state === 'ACTIVE' && (!experiment.started || slots)) {
    return {
      ...experimentStateText({ state: 'QUEUED' }),
      ...(slots ? { note: `waits for ${slots}` } : {})
    };
  }
  const { state, failed_trials: failed = 0, trials } = experiment;
  if (state === 'COMPLETED' && failed > 0) {
    const note = `${failed} of ${trials} trials failed`;
    return { word: 'Completed', tone: 'waiting', note };
  }
  return noted(EXPERIMENT_TEXTS, state, experiment.notice);
}

function noted(
  texts: Readonly<Record<string, StateText>>,
  state: string,
  note?: string
): StateText {
  const text = texts[state] ?? { word: state, tone: 'neutral' };
  return note ? { ...text, note } : text;
}

/** Word for a trial; one that waits while its experiment is paused waits for no slot. */
export function trialStateText(
  trial: Pick<Trial, 'state'> &
    Partial<Pick<Trial, 'notice' | 'stopped_early'>>,
  experiment?:
    (Pick<Experiment, 'state'> & Partial<Pick<Experiment, 'waits_for'>>) | null
): StateText {
  const waits = experiment?.state === 'PAUSED' || experiment?.waits_for;
  if (trial.state === 'QUEUED' && experiment && waits) {
    const text = experimentStateText(experiment);
    return trial.notice ? { ...text, note: trial.notice } : text;
  }
  if (trial.stopped_early) {
    const note = trialNotice(trial);
    return { word: 'Stopped early', tone: 'neutral', ...(note && { note }) };
  }
  return noted(TRIAL_TEXTS, trial.state, trial.notice);
}

const EARLY = 'stopped early by the search, ';

/** What is said after the word for a trial: of one that its search ended early only when that was. */
export function trialNotice(
  trial: Partial<Pick<Trial, 'notice' | 'stopped_early'>>
): string {
  const { notice = '', stopped_early } = trial;
  if (!stopped_early) {
    return notice;
  }
  const after = notice.startsWith(EARLY) ? notice.slice(EARLY.length) : notice;
  return after.split(':')[0] ?? '';
}

/** What is said of a lost connection, and what goes on behind it; empty while all is well. */
export function connectionText(connection: Connection): string {
  if (connection.kind === 'connecting') {
    return 'Connecting…';
  }
  if (connection.kind !== 'lost') {
    return '';
  }
  const reason = connection.message.replace(/\.?$/, '.');
  const next = connection.state === 'gone' ? '' : 'Trying again…';
  const { never, remedy, since } = connection;
  const what = never
    ? 'No connection yet.'
    : `Connection lost since ${formatClock(since)}.`;
  return `${what} ${reason} ${remedy} ${next}`.replace(/\s+/g, ' ').trim();
}

/** What is said above what a notebook has saved of an experiment, while nobody can be asked how it goes on. */
export function awayText(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `As it was saved, not live: ${reason.replace(/\.?$/, '.')} The Experiments panel says what can be done; then this view goes on by itself.`;
}

/** What is said instead of an experiment that the master does not know. */
export function missingText({
  id,
  trialId
}: Pick<ExperimentView, 'id' | 'trialId'>): string {
  const what = `experiment ${id}`;
  const whole = trialId > 0 ? `trial ${trialId} of ${what}` : what;
  return `There is no ${whole} on this master.`;
}

/** What a panel says of the master, if it has nothing else to show. */
export function masterText(status: MasterStatus): {
  title: string;
  body: string;
} {
  const titles: Readonly<Record<MasterStatus['state'], string>> = {
    running: 'Master running',
    none: 'No master is running',
    starting: 'The master is starting…',
    unauthorised: 'The master refuses access',
    mismatch: 'Versions do not match',
    unreachable: 'The master does not answer'
  };
  return {
    title: titles[status.state],
    body: [status.message, status.remedy].join(' ').trim()
  };
}

export const TEXTS = {
  start: 'Start a master',
  elsewhere: 'Shown in another view of this output.',
  loading: 'Loading the experiment…',
  noMetrics:
    'No metrics yet. The first point appears after the first report of a trial.',
  noMetricsEnded: 'No metrics were reported.',
  noCurves: 'The curves are not here yet.',
  noCurvesEnded: 'There are no curves of its metrics.',
  noNumbers: 'All values are NaN or infinite: there is nothing to draw.',
  noTrials: 'No trial has started yet.',
  noSearchValues: 'No trial has been validated yet.',
  noCheckpoints: 'No checkpoint yet.',
  noCheckpointsEnded: 'No checkpoint was written.',
  noMedia: 'This trial has logged no picture, table or text.',
  noFiles: 'This trial has written no file.',
  filesInNotebook:
    'In the notebook, trial.artifacts has the content of these files.',
  noLogs: 'No output yet.',
  noLogsEnded: 'Nothing was printed.',
  leave: 'Leave it running',
  leaveHint: 'The cell ends, and the training goes on.',
  confirmStop:
    'Stop this experiment? Its trials write a checkpoint and end; they cannot be resumed.',
  confirmStopHere:
    'Stop this training? It ends after the batch under way, with a checkpoint.',
  inKernel: 'in a kernel',
  noPause:
    'It trains in a kernel, where it cannot go on later: Stop ends it with a checkpoint, and Continue begins there.',
  stopsHere: 'It ends after the batch under way, with a checkpoint.',
  confirmKill:
    'Kill this experiment? Its trials end at once, without a checkpoint.',
  kernelGone: 'The kernel that showed this has ended.',
  kernelBusy:
    'The kernel is busy: this is done as soon as the running cell ends.',
  viewGone: 'The view was closed before the kernel answered.'
} as const;

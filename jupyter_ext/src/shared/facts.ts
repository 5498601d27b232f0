/** What follows from a view. Pure. */

import { cellName, formatCount } from './format';
import type {
  Checkpoint,
  ExperimentView,
  LogLine,
  Trial,
  UserErrorInfo
} from './model';
import { isTerminal, TRIALS_WITH_CURVES } from './model';
import { checkpointsBestFirst, score, trialsBestFirst } from './ranking';
import { kindsText } from './slotNames';
import { trialNumber } from './trialNumbers';

/** The trial that the whole view is of; null for that of an experiment. */
export function shownTrial(view: ExperimentView): Trial | null {
  return view.trialId > 0
    ? (view.trials.find(trial => trial.id === view.trialId) ?? null)
    : null;
}

/** The trials by their best validation, best first. */
export function bestFirst({ experiment, trials }: ExperimentView): Trial[] {
  return trialsBestFirst(trials, experiment?.smaller_is_better !== false);
}

/** The trial with the best validation; null while none has been validated. */
export function bestTrial(view: ExperimentView): Trial | null {
  const [best] = bestFirst(view);
  return best && best.best_validation !== null ? best : null;
}

function share(trial: Trial): number {
  if (trial.state === 'COMPLETED') {
    return 1;
  }
  return trial.target_batches > 0
    ? Math.min(trial.batches / trial.target_batches, 1)
    : 0;
}

/** How much is done, from 0 to 1. */
export function progressOf(view: ExperimentView): number {
  const trial = shownTrial(view);
  if (trial) {
    return share(trial);
  }
  const { experiment } = view;
  if (!experiment || experiment.state === 'COMPLETED') {
    return experiment ? 1 : 0;
  }
  const only =
    experiment.trials <= 1 && view.trials.length === 1
      ? view.trials[0]
      : undefined;
  return Math.min(Math.max(experiment.progress, only ? share(only) : 0), 1);
}

/** Says that a search has more trials than are drawn; empty where all are. */
export function curvesText({ trials, curves }: ExperimentView): string {
  const shown = new Set(curves.map(curve => curve.trial_id)).size;
  return trials.length > TRIALS_WITH_CURVES && shown < trials.length
    ? `Curves of ${shown} of ${trials.length} trials: the best and the newest.`
    : '';
}

/** Value of the searcher's metric at a checkpoint; of another metric if it has none; null without validation. */
export function checkpointMetric(
  checkpoint: Checkpoint,
  metric: string
): { name: string; value: unknown } | null {
  const name =
    metric in checkpoint.metrics ? metric : Object.keys(checkpoint.metrics)[0];
  return name === undefined ? null : { name, value: checkpoint.metrics[name] };
}

/** The checkpoint with the best value of the searcher's metric, as `experiment.top_checkpoint()`; null while none has one. */
export function bestCheckpoint(
  checkpoints: readonly Checkpoint[],
  metric: string,
  smallerIsBetter: boolean
): Checkpoint | null {
  const [best] = checkpointsBestFirst(checkpoints, metric, smallerIsBetter);
  return best && Number.isFinite(score(best.metrics[metric], smallerIsBetter))
    ? best
    : null;
}

/** Of a message, so much stands in a headline; all of it stands in the traceback. */
const HEADLINE_CHARACTERS = 200;

/** A failure with what is said of it before its traceback. */
export interface Failure {
  readonly headline: string;
  readonly traceback: string;
}

interface FirstOfMany extends Failure {
  readonly what: string;
  /** Trials that failed in the same way. */
  readonly others: number[];
}

/** What went wrong: what made trials fail, why the experiment failed, and warnings of trials. Same tracebacks are told once. */
export function failuresOf(view: ExperimentView): Failure[] {
  const found = new Map<string, FirstOfMany>();
  for (const trial of view.trials) {
    // That its code refused its hyperparameters is no failure, and stands beside its state.
    const refused =
      trial.state === 'CANCELED' && trial.error?.type === 'InvalidHP';
    if (trial.error && trial.state !== 'COMPLETED' && !refused) {
      const retried = isTerminal(trial.state) ? '' : '; it is tried again';
      const traceback = tracebackOf(trial.error);
      const headline = `Trial ${trialNumber(trial)} failed${whereText(trial.error)}${retried}`;
      const known = found.get(traceback);
      known?.others.push(trialNumber(trial));
      const what = whatText(trial.error);
      found.set(traceback, known ?? { headline, what, traceback, others: [] });
    }
  }
  const failures = [...found.values()].map(
    ({ headline, what, traceback, others }) =>
      failure(headline + othersText(others), what, traceback)
  );
  const error = view.experiment?.error;
  if (error && view.experiment?.state === 'CANCELED') {
    // Nobody's mistake: a kernel was restarted, say.
    failures.push({ headline: problemText(error), traceback: error.traceback });
  } else if (error && !found.has(tracebackOf(error))) {
    const headline = `The experiment failed${whereText(error)}`;
    failures.push(failure(headline, whatText(error), tracebackOf(error)));
  }
  for (const { id, number, warning } of view.trials) {
    if (warning) {
      failures.push({
        headline: `Trial ${trialNumber({ id, number })}: ${warning}`,
        traceback: ''
      });
    }
  }
  return failures;
}

/** What is said below the headline is nothing, if that says it all. */
function failure(place: string, what: string, traceback: string): Failure {
  const all = what === `: ${traceback}`;
  return { headline: place + what, traceback: all ? '' : traceback };
}

/** `; so did trials 14 and 15`. */
function othersText(trials: readonly number[]): string {
  const [last, ...before] = [...trials].reverse();
  if (last === undefined) {
    return '';
  }
  const names =
    before.length > 0
      ? `${before.reverse().join(', ')} and ${last}`
      : String(last);
  return `; so did trial${before.length > 0 ? 's' : ''} ${names}`;
}

/** `on 2 slots: NVIDIA H100 (80.0 GB)`; empty for a trial that holds none at the moment, or one of which nothing is known. */
export function slotsText(
  { slots = [] }: Trial,
  experiment: ExperimentView['experiment'] = null
): string {
  const resources = experiment?.config.resources as
    { slots_per_trial?: number } | undefined;
  if (resources?.slots_per_trial === 0) {
    return 'without a slot';
  }
  const names = experiment?.devices ?? {};
  const kinds = kindsText(slots.map(slot => names[slot] ?? '').filter(Boolean));
  if (slots.length < 2) {
    return kinds && `on ${kinds}`;
  }
  return `on ${slots.length} slots${kinds && `: ${kinds}`}`;
}

/** `worker 1` where processes have roles, else `rank 1`; empty where there is one process only. */
function processText({
  rank,
  role
}: {
  rank?: number | null;
  role?: string | null;
}): string {
  return role ?? (typeof rank === 'number' ? `rank ${rank}` : '');
}

/** `[rank 1] loss 0.3`: a line of a log, with the process that wrote it where there are several. */
export function lineText(line: LogLine): string {
  const process = processText(line);
  return process ? `[${process}] ${line.text}` : line.text;
}

/** ` at batch 30, in cell [4], line 2, on rank 1`; batches are counted from 1. */
export function whereText(error: UserErrorInfo): string {
  const when = error.batch
    ? ` at batch ${formatCount(error.batch)}`
    : ' before its first batch';
  const cell = typeof error.cell === 'number' ? cellName(error.cell) : '';
  const place = [cell, error.file ?? ''].filter(Boolean).join(', ');
  const line =
    place && typeof error.line === 'number' ? `, line ${error.line}` : '';
  const process = processText(error);
  const on = process ? `, on ${process}` : '';
  return when + (place ? `, in ${place}${line}` : '') + on;
}

/** `Stopped: its kernel was restarted`. */
function problemText(error: UserErrorInfo): string {
  return whatText(error).replace(/^: /, '');
}

/** `: ValueError: bad shape`, in one line. */
function whatText({ type, message }: UserErrorInfo): string {
  const line = message.replace(/\s+/g, ' ').trim();
  const characters = [...line];
  const short =
    characters.length > HEADLINE_CHARACTERS
      ? `${characters.slice(0, HEADLINE_CHARACTERS).join('')}…`
      : line;
  return [type, short]
    .filter(Boolean)
    .map(part => `: ${part}`)
    .join('');
}

function tracebackOf(error: UserErrorInfo): string {
  return error.traceback || `${error.type}: ${error.message}`;
}

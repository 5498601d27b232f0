/** What is shown of an experiment, from snapshots and events. Pure. */

import type {
  Checkpoint,
  Connection,
  ExperimentDetail,
  ExperimentId,
  ExperimentView,
  LogLine,
  LogState,
  MetricCurve,
  OutputsState,
  SystemState,
  Trial,
  UserErrorInfo
} from './model';
import { isTerminal } from './model';
import type { StreamEvent } from './sse';

/** Parts of a view that are known anew. */
export interface ViewParts {
  experiment?: ExperimentDetail;
  trials?: readonly Trial[];
  checkpoints?: readonly Checkpoint[];
  curves?: readonly MetricCurve[];
  logs?: readonly LogLine[];
  log?: LogState;
  system?: SystemState | null;
  outputs?: OutputsState | null;
}

/** Nothing is known yet. */
export function emptyView(id: ExperimentId, trialId = 0): ExperimentView {
  return {
    id,
    trialId,
    experiment: null,
    trials: [],
    checkpoints: [],
    curves: [],
    logs: [],
    log: null,
    system: null,
    outputs: null,
    connection: { kind: 'connecting' }
  };
}

/** Take over parts that were asked for. */
export function withParts(
  view: ExperimentView,
  parts: ViewParts
): ExperimentView {
  return { ...view, ...parts };
}

export function withConnection(
  view: ExperimentView,
  connection: Connection
): ExperimentView {
  return { ...view, connection };
}

/** Data of the master's event stream: `Event` of its REST interface. */
interface EventBody {
  readonly trial_id: number | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Take over an event. Of metrics it says only that there are more: how they look is the server's to say. */
export function withEvent(
  view: ExperimentView,
  event: StreamEvent
): ExperimentView {
  const { data, trial_id: trialId } = event.data as EventBody;
  switch (event.event) {
    case 'experiment':
      return { ...view, experiment: merged(view.experiment, data) };
    case 'trial':
      return withTrial(view, data as unknown as Trial);
    case 'checkpoint':
      return withCheckpoint(view, data as unknown as Checkpoint);
    case 'metrics':
      return trialId === null
        ? view
        : withBatches(view, trialId, Number(data.batch));
    case 'error':
      return trialId === null
        ? view
        : withError(view, trialId, data as unknown as UserErrorInfo);
    default:
      return view;
  }
}

/** What an event tells anew, by its kind and number: `trial 3`. */
export function thingOf({ event, data }: StreamEvent): string {
  const { id, uuid } = (data as EventBody).data as {
    id?: number;
    uuid?: string;
  };
  return `${event} ${uuid ?? id}`;
}

/** Whether an event means that curves have to be asked for again. */
export function changesCurves(event: StreamEvent): boolean {
  return (
    event.event === 'metrics' ||
    event.event === 'trial' ||
    event.event === 'experiment'
  );
}

/** Whether an event means that a trial or a checkpoint may have a new best value, of which no event tells. */
export function changesBest(event: StreamEvent): boolean {
  const { data } = event.data as EventBody;
  return event.event === 'metrics' && data.kind === 'validation';
}

/** The view with values of trials and checkpoints as asked for; of all else, events tell earlier. */
export function withBest(
  view: ExperimentView,
  trials: readonly Trial[],
  checkpoints: readonly Checkpoint[]
): ExperimentView {
  const metrics = new Map(checkpoints.map(each => [each.uuid, each.metrics]));
  const best = new Map(trials.map(each => [each.id, each]));
  return {
    ...view,
    checkpoints: view.checkpoints.map(each => ({
      ...each,
      metrics: metrics.get(each.uuid) ?? each.metrics
    })),
    trials: view.trials.map(trial => {
      const asked = best.get(trial.id);
      const value = asked?.best_validation ?? trial.best_validation;
      return value === trial.best_validation
        ? trial
        : { ...trial, best_validation: value, best_at: asked?.best_at };
    })
  };
}

/** Whether nothing more will come: an experiment that has ended, all trials included. */
export function hasEnded(view: ExperimentView): boolean {
  return view.experiment !== null && isTerminal(view.experiment.state);
}

/**
 * The trials whose logs are of interest, most first: of an experiment that has failed those that failed, else those
 * that run, before the others, each kind newest first. Of a trial's own view, only that one.
 */
export function logTrials(view: ExperimentView): Trial[] {
  if (view.trialId > 0) {
    return view.trials.filter(trial => trial.id === view.trialId);
  }
  const first = view.experiment?.state === 'ERROR' ? 'ERROR' : 'RUNNING';
  const newestFirst = [...view.trials].reverse();
  return [
    ...newestFirst.filter(trial => trial.state === first),
    ...newestFirst.filter(trial => trial.state !== first)
  ];
}

/** The trial whose log is of most interest. */
export function logTrial(view: ExperimentView): Trial | null {
  return logTrials(view)[0] ?? null;
}

function merged(
  known: ExperimentDetail | null,
  data: EventBody['data']
): ExperimentDetail {
  // An event has the experiment without its report, which never changes.
  return { ...(known ?? { report: [] }), ...data } as ExperimentDetail;
}

function withTrial(view: ExperimentView, trial: Trial): ExperimentView {
  if (view.trialId > 0 && trial.id !== view.trialId) {
    return view;
  }
  const others = view.trials.filter(known => known.id !== trial.id);
  return {
    ...view,
    trials: [...others, trial].sort((one, other) => one.id - other.id)
  };
}

function withCheckpoint(
  view: ExperimentView,
  checkpoint: Checkpoint
): ExperimentView {
  if (view.trialId > 0 && checkpoint.trial_id !== view.trialId) {
    return view;
  }
  const others = view.checkpoints.filter(
    known => known.uuid !== checkpoint.uuid
  );
  const sorted = [...others, checkpoint].sort(
    (one, other) => one.trial_id - other.trial_id || one.batch - other.batch
  );
  return { ...view, checkpoints: sorted };
}

function withBatches(
  view: ExperimentView,
  trialId: number,
  batch: number
): ExperimentView {
  const index = view.trials.findIndex(
    trial => trial.id === trialId && batch > trial.batches
  );
  const found = view.trials[index];
  if (!found) {
    return view;
  }
  return {
    ...view,
    trials: view.trials.with(index, { ...found, batches: batch })
  };
}

/** An exception is shown at once, even if a retry follows. */
function withError(
  view: ExperimentView,
  trialId: number,
  error: UserErrorInfo
): ExperimentView {
  const index = view.trials.findIndex(trial => trial.id === trialId);
  const found = view.trials[index];
  return found
    ? { ...view, trials: view.trials.with(index, { ...found, error }) }
    : view;
}

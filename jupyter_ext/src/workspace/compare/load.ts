/** What the compare page knows of each experiment. */

import { type Api, dataOf } from '../../shared/api';
import type {
  ExperimentDetail,
  ExperimentId,
  MetricCurve,
  SystemSample,
  Trial
} from '../../shared/model';
import { trialsBestFirst } from '../../shared/ranking';
import {
  experimentDetail,
  ofExperiment,
  ofTrial,
  systemSamples,
  trialsOf,
  trialSummaries
} from '../../shared/requests';
import { RequestError } from '../../shared/transport';
import { trialNumber } from '../../shared/trialNumbers';
import type { TrialClock } from '../charts/clock';
import { asError } from '../data/useLoad';
import type { TrialSummary } from '../search/trials';

/** An experiment of the comparison, as it was when it was asked for. */
export interface Compared {
  readonly id: ExperimentId;
  readonly detail: ExperimentDetail;
  readonly trials: readonly Trial[];
  /** Of the master; none of a run of this machine's own. */
  readonly summaries: readonly TrialSummary[];
}

/** An experiment that could not be loaded, and the reason. */
export interface Missing {
  readonly id: ExperimentId;
  readonly text: string;
}

export interface Loadeds {
  readonly experiments: readonly Compared[];
  readonly missing: readonly Missing[];
}

/** So many requests at once: a browser has no more connections. */
const AT_ONCE = 6;

/** Load all experiments; those that are gone are left out, and named. Rejects if nothing at all answers. */
export async function loadExperiments(
  api: Api,
  ids: readonly ExperimentId[],
  signal: AbortSignal
): Promise<Loadeds> {
  const experiments: Compared[] = [];
  const missing: Missing[] = [];
  const summaries = await trialSummaries(api, [...ids], signal).catch(
    asUnknown
  );
  const loaded = await each(ids, async id => {
    try {
      const [detail, trials] = await Promise.all([
        experimentDetail(api, id, signal),
        trialsOf(api, id, signal)
      ]);
      return { detail, trials };
    } catch (error) {
      return asError(error);
    }
  });
  signal.throwIfAborted();
  ids.forEach((id, at) => {
    const found = loaded[at]!;
    if (found instanceof RequestError) {
      missing.push({ id, text: whyMissing(found) });
    } else {
      const own = summaries.filter(
        ({ experiment_id: experiment }) => experiment === id
      );
      experiments.push({ id, ...found, summaries: own });
    }
  });
  const first = loaded.find(found => found instanceof RequestError);
  if (experiments.length === 0 && first && !isGone(first)) {
    throw first;
  }
  return { experiments, missing };
}

/** The facts and curves come without: they are known of the trials, too. */
function asUnknown(error: unknown): TrialSummary[] {
  if (error instanceof RequestError) {
    return [];
  }
  throw error;
}

function isGone({ status }: RequestError): boolean {
  return status === 404 || status === 410;
}

function whyMissing(error: RequestError): string {
  return isGone(error)
    ? 'it does not exist any more, or never did'
    : error.message;
}

/** The trial of each experiment that is shown: the chosen number, else the best, else the first. */
export function shownTrial(
  { detail, trials }: Compared,
  number: number | undefined
): Trial | null {
  return (
    trials.find(trial => trialNumber(trial) === number) ??
    trialsBestFirst(trials, detail.smaller_is_better)[0] ??
    null
  );
}

/** Curves, times and use of the machine of one trial. */
export interface TrialData {
  readonly id: ExperimentId;
  readonly trial: Trial;
  readonly curves: readonly MetricCurve[];
  readonly clocks: readonly TrialClock[];
}

export async function loadCurves(
  api: Api,
  shown: ReadonlyArray<{ id: ExperimentId; trial: Trial }>,
  signal: AbortSignal
): Promise<TrialData[]> {
  return each(shown, async ({ id, trial }) => {
    const [curves, clocks] = await Promise.all([
      dataOf(
        api.GET('/api/v1/trials/{trial_id}/curves', {
          params: { ...ofTrial(trial.id), query: { buckets: 500 } },
          signal
        })
      ).catch(withoutRefused<MetricCurve>),
      dataOf(
        api.GET('/api/v1/experiments/{experiment_id}/clocks', {
          params: {
            ...ofExperiment(id),
            query: { only: [trial.id], trials: 1 }
          },
          signal
        })
      ).catch(withoutRefused<TrialClock>)
    ]);
    return { id, trial, curves, clocks };
  });
}

export async function loadSystem(
  api: Api,
  shown: ReadonlyArray<{ id: ExperimentId; trial: Trial }>,
  signal: AbortSignal
): Promise<Array<readonly SystemSample[]>> {
  return each(shown, ({ trial }) =>
    systemSamples(api, trial.id, 500, signal).catch(
      withoutRefused<SystemSample>
    )
  );
}

/** What was deleted meanwhile has nothing; that nobody answers is an error. */
function withoutRefused<T>(error: unknown): T[] {
  if (error instanceof RequestError && error.status >= 400) {
    return [];
  }
  throw error;
}

async function each<In, Out>(
  items: readonly In[],
  work: (item: In) => Promise<Out>
): Promise<Out[]> {
  const results: Out[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next;
      next += 1;
      results[at] = await work(items[at]!);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/** Chosen trials in an address: `7:12,9:3`. */
export function readChosen(text: string): Map<string, number> {
  const pairs = text.split(',').flatMap((pair): Array<[string, number]> => {
    const [id = '', number = ''] = pair.split(':');
    return /^\d{1,9}$/.test(number) ? [[id, Number(number)]] : [];
  });
  return new Map(pairs);
}

export function chosenText(chosen: ReadonlyMap<string, number>): string {
  return [...chosen].map(([id, number]) => `${id}:${number}`).join(',');
}

/** The curves of an experiment, those that the user has chosen, and of a stretch in full. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { type Api, dataOf } from '../../shared/api';
import type { ExperimentView, MetricCurve, Trial } from '../../shared/model';
import { ofExperiment, ofTrial } from '../../shared/requests';
import { RequestError } from '../../shared/transport';
import { useApi } from '../app/context';
import { asError } from '../data/useLoad';
import type { TrialClock } from './clock';

const BUCKETS = 500;
const BUCKETS_OF_ONE = 1000;
/** A zoom that is still being made is not asked for. */
const SETTLED_MILLISECONDS = 250;

export interface Asked<T> {
  readonly data: T | null;
  readonly error: RequestError | null;
}

/**
 * Ask again with each change of `key`, one question at a time, and once more for what came meanwhile.
 *
 * What is known stays until the answer is there; with another `owner` it counts no more.
 */
function useAsked<T>(
  owner: string | null,
  key: unknown,
  ask: (signal: AbortSignal) => Promise<T>
): Asked<T> {
  const [state, setState] = useState<Asked<T> & { owner: string | null }>({
    owner,
    data: null,
    error: null
  });
  const current = useRef({ ask, key });
  current.current = { ask, key };
  const running = useRef(false);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => {
    controller.current = new AbortController();
    running.current = false;
    return () => controller.current?.abort();
  }, [owner]);
  useEffect(() => {
    const { signal } = controller.current!;
    const run = async () => {
      running.current = true;
      const asked = current.current.key;
      try {
        const data = await current.current.ask(signal);
        if (!signal.aborted) {
          setState({ owner, data, error: null });
        }
      } catch (error) {
        if (!signal.aborted) {
          const shown = asError(error);
          setState(before => ({ ...before, owner, error: shown }));
        }
      }
      if (!signal.aborted) {
        running.current = false;
        if (asked !== current.current.key) {
          void run();
        }
      }
    };
    if (owner !== null && !running.current) {
      void run();
    }
  }, [owner, key]);
  return state.owner === owner ? state : { data: null, error: null };
}

/** Curves of these trials; null asks for nothing. They are asked for again whenever `round` changes. */
export function useCurvesOf(
  view: ExperimentView,
  trials: readonly Trial[] | null,
  round: unknown
): Asked<readonly MetricCurve[]> {
  const api = useApi();
  const ids = trials?.map(({ id }) => id).join(',') ?? null;
  return useAsked(ids === null ? null : `${view.id} ${ids}`, round, signal =>
    curvesOf(api, view, trials ?? [], {}, signal)
  );
}

/** When these trials had done how much. Masters of before do not know it. */
export function useClocks(
  view: ExperimentView,
  trials: readonly Trial[],
  round: unknown
): readonly TrialClock[] {
  const api = useApi();
  const ids = trials.map(({ id }) => id).join(',');
  const known = trials.length > 0;
  const { data } = useAsked(
    known ? `${view.id} ${ids}` : null,
    round,
    async signal => {
      try {
        const query = {
          only: trials.map(({ id }) => id),
          trials: Math.max(trials.length, 1)
        };
        return await dataOf(
          api.GET('/api/v1/experiments/{experiment_id}/clocks', {
            params: { ...ofExperiment(view.id), query },
            signal
          })
        );
      } catch (error) {
        if (error instanceof RequestError && error.status === 404) {
          return [];
        }
        throw error;
      }
    }
  );
  return data ?? NO_CLOCKS;
}

const NO_CLOCKS: readonly TrialClock[] = [];

/** Curves of a stretch of batches, finer than those of the whole; null where there are none, or not yet. */
export function useStretch(
  view: ExperimentView,
  trials: readonly Trial[],
  stretch: readonly [number, number] | null,
  coarse: boolean
): readonly MetricCurve[] | null {
  const api = useApi();
  const [settled, setSettled] = useState<string | null>(null);
  const wanted =
    stretch !== null && coarse
      ? `${view.id} ${trials.map(({ id }) => id).join(',')} ${stretch.join(' ')}`
      : null;
  useEffect(() => {
    const timer = setTimeout(() => setSettled(wanted), SETTLED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [wanted]);
  const asked = settled === wanted ? wanted : null;
  const { data } = useAsked(asked, '', signal => {
    const [first, last] = stretch ?? [0, 0];
    return curvesOf(api, view, trials, { first, last }, signal);
  });
  return useMemo(() => data, [data]);
}

function curvesOf(
  api: Api,
  view: ExperimentView,
  trials: readonly Trial[],
  stretch: { first?: number; last?: number },
  signal: AbortSignal
): Promise<MetricCurve[]> {
  const [only] = trials;
  if (trials.length === 1 && only) {
    const query = { buckets: BUCKETS_OF_ONE, ...stretch };
    return dataOf(
      api.GET('/api/v1/trials/{trial_id}/curves', {
        params: { ...ofTrial(only.id), query },
        signal
      })
    );
  }
  const query = {
    buckets: BUCKETS,
    trials: Math.max(trials.length, 1),
    only: trials.map(({ id }) => id),
    ...stretch
  };
  return dataOf(
    api.GET('/api/v1/experiments/{experiment_id}/curves', {
      params: { ...ofExperiment(view.id), query },
      signal
    })
  );
}

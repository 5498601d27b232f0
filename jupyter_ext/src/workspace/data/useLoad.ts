/** Data of the master in a part of the workspace: loaded, and loaded again when they have changed. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import type { ExperimentId } from '../../shared/model';
import { RequestError } from '../../shared/transport';
import { useWorkspace } from '../app/context';

/** How loading stands. `data` stays while newer ones are asked for, and when that fails. */
export interface Loaded<T> {
  readonly data: T | null;
  readonly error: RequestError | null;
  readonly loading: boolean;
  readonly reload: () => void;
}

/** When data are loaded again: with each change of one of these experiments, or of any. */
export type Follows = readonly ExperimentId[] | 'all' | 'nothing';

/**
 * Load data.
 *
 * @param key - Says what is asked for; with another key all begins anew. Null asks for nothing.
 * @param load - Asks for them; called off when the part goes or asks for something else.
 * @param follows - Whose changes have them loaded again.
 */
export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  follows: Follows = 'nothing'
): Loaded<T> {
  const { live } = useWorkspace();
  const [state, setState] = useState<{
    key: string | null;
    data: T | null;
    error: RequestError | null;
    loading: boolean;
  }>({ key, data: null, error: null, loading: key !== null });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound(number => number + 1), []);
  const current = useRef(load);
  current.current = load;

  useEffect(() => {
    if (key === null) {
      setState({ key, data: null, error: null, loading: false });
      return undefined;
    }
    const controller = new AbortController();
    setState(before =>
      before.key === key
        ? { ...before, loading: true }
        : { key, data: null, error: null, loading: true }
    );
    current.current(controller.signal).then(
      data => {
        if (!controller.signal.aborted) {
          setState({ key, data, error: null, loading: false });
        }
      },
      (error: unknown) => {
        if (!controller.signal.aborted) {
          const shown = asError(error);
          setState(before => ({ ...before, error: shown, loading: false }));
        }
      }
    );
    return () => controller.abort();
  }, [key, round]);

  const watched = typeof follows === 'string' ? follows : follows.join(',');
  useEffect(() => {
    if (watched === 'nothing' || key === null) {
      return undefined;
    }
    const ids = watched === 'all' ? null : new Set(watched.split(','));
    return live.subscribe(changed => {
      const concerned =
        ids === null ||
        changed.size === 0 ||
        [...changed].some(id => ids.has(String(id)));
      if (concerned) {
        reload();
      }
    });
  }, [live, watched, key, reload]);

  // What belongs to another key is never shown under this one.
  const fresh = state.key === key;
  return {
    data: fresh ? state.data : null,
    error: fresh ? state.error : null,
    loading: fresh ? state.loading : key !== null,
    reload
  };
}

/** Whatever was thrown, with words for the user. */
export function asError(error: unknown): RequestError {
  return error instanceof RequestError
    ? error
    : new RequestError(
        error instanceof Error ? error.message : String(error),
        0,
        'refused'
      );
}

/** One experiment, live: what its feed says, what others have changed since it ended, and whether it is gone. */

import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';

import type { components } from '../../generated/rest';
import { ExperimentFeed } from '../../shared/feed';
import type {
  ExperimentDetail,
  ExperimentId,
  ExperimentView
} from '../../shared/model';
import { changeExperiment, experimentDetail } from '../../shared/requests';
import { RequestError } from '../../shared/transport';
import { useSeen, useWorkspace } from '../app/context';

/** What people write of an experiment. */
export type ExperimentChange = components['schemas']['ExperimentChange'];

export interface LiveExperiment {
  readonly feed: ExperimentFeed;
  readonly view: ExperimentView;
  /** It was there and is not any more. */
  readonly gone: boolean;
  /** Change what people write of it; rejects with words for the user. */
  readonly change: (change: ExperimentChange) => Promise<void>;
  /** Ask for it once more, now. */
  readonly refresh: () => void;
}

/** Whether an experiment exists no more, as a feed knows it. */
function isGone(view: ExperimentView): boolean {
  return (
    view.experiment !== null &&
    (view.experiment.state === 'DELETED' || view.connection.kind === 'missing')
  );
}

export function useExperiment(id: ExperimentId): LiveExperiment {
  const { host, live } = useWorkspace();
  const { transport } = host;
  const feed = useMemo(
    () => new ExperimentFeed(transport, id),
    [transport, id]
  );
  const [view, setView] = useState(feed.view);
  const [newer, setNewer] = useState<Newer | null>(null);
  const [gone, setGone] = useState(false);
  const seen = useSeen();

  useEffect(() => {
    let frame = 0;
    const end = feed.subscribe(() => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setView(feed.view);
      });
    });
    return () => {
      end();
      cancelAnimationFrame(frame);
      feed.dispose();
    };
  }, [feed]);
  useEffect(() => (seen ? feed.resume() : feed.pause()), [feed, seen]);

  const refresh = useCallback(() => {
    const look = async () => {
      const base = feed.view.experiment;
      try {
        const values = await experimentDetail(transport.api, id);
        setNewer({ values, base });
      } catch (error) {
        // Without an answer the page goes on with what it knows; the frame says that the connection is lost.
        if (error instanceof RequestError && error.status === 404) {
          setGone(error.state === 'refused');
        }
      }
    };
    void look();
  }, [transport, id, feed]);

  const ended = view.connection.kind === 'ended';
  useEffect(() => {
    if (!ended) {
      return undefined; // its own stream tells what happens
    }
    return live.subscribe(changed => {
      if (changed.size === 0 || changed.has(id)) {
        refresh();
      }
    });
  }, [ended, live, id, refresh]);

  const change = useCallback(
    async (wanted: ExperimentChange) => {
      const base = feed.view.experiment;
      const answer = await changeExperiment(transport.api, id, wanted);
      const { notes } = wanted;
      const values = {
        ...written(answer),
        ...(typeof notes === 'string' ? { notes } : {})
      };
      setNewer(before => ({
        values: { ...(before?.base === base ? before?.values : {}), ...values },
        base
      }));
    },
    [transport, id, feed]
  );

  const shown = useMemo(() => withNewer(view, newer), [view, newer]);
  return { feed, view: shown, gone: gone || isGone(shown), change, refresh };
}

/** Values that are newer than what the feed has said by then: `base`. */
interface Newer {
  readonly values: Partial<ExperimentDetail>;
  readonly base: ExperimentDetail | null;
}

/** The view with newer values, unless the feed has said others since. */
export function withNewer(
  view: ExperimentView,
  newer: Newer | null
): ExperimentView {
  const { experiment } = view;
  if (newer === null || experiment === null) {
    return view;
  }
  const base = (newer.base ?? {}) as Record<string, unknown>;
  const said = experiment as unknown as Record<string, unknown>;
  const values = Object.entries(newer.values).filter(
    ([name]) => JSON.stringify(said[name]) === JSON.stringify(base[name])
  );
  return {
    ...view,
    experiment: { ...experiment, ...Object.fromEntries(values) }
  };
}

const WRITTEN = [
  'name',
  'description',
  'notes',
  'project',
  'labels',
  'archived'
] as const;

/** Of an answer to a change, what people write; the rest the feed tells. */
function written(answer: Partial<ExperimentDetail>): Partial<ExperimentDetail> {
  return Object.fromEntries(
    WRITTEN.filter(name => answer[name] !== undefined).map(name => [
      name,
      answer[name]
    ])
  );
}

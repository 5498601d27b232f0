/** One experiment: its tabs, live. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { ExperimentElement } from '../../shared/experimentView';
import { ExperimentFeed } from '../../shared/feed';
import { shortened } from '../../shared/format';
import type { ExperimentId } from '../../shared/model';
import { shortName } from '../../shared/paths';
import type { Tab } from '../app/address';
import { useSeen, useWorkspace } from '../app/context';
import { ChartsTab } from '../charts/chartsTab';

export function ExperimentPage({ id, tab }: { id: ExperimentId; tab: Tab }) {
  const { host } = useWorkspace();
  const root = useRef<HTMLDivElement>(null);
  const feed = useMemo(
    () => new ExperimentFeed(host.transport, id),
    [host, id]
  );
  const [view, setView] = useState(feed.view);
  useEffect(() => feed.subscribe(setView), [feed]);
  const charts = tab === 'charts';
  const seen = useSeen();
  useEffect(() => (seen ? feed.resume() : feed.pause()), [feed, seen]);
  useEffect(() => () => feed.dispose(), [feed]);
  useEffect(() => {
    if (charts) {
      return undefined;
    }
    const element = new ExperimentElement(root.current!, feed, {
      page: true,
      onLoad:
        host.loadIntoNotebook &&
        (checkpoint => void host.loadIntoNotebook?.(id, checkpoint))
    });
    const end = feed.subscribe(({ experiment }) =>
      // JupyterLab's status bar shows the title whole, and has room for no more.
      host.setTitle(
        `${shortName(id)} ${shortened(experiment?.name ?? '')}`.trim(),
        `Experiment ${id}: ${experiment?.name ?? ''}`
      )
    );
    return () => {
      end();
      element.dispose();
    };
  }, [host, id, feed, charts]);
  return charts ? (
    <div class="det-page-body">
      <ChartsTab view={view} feed={feed} />
    </div>
  ) : (
    <div ref={root} class="det-page-body" />
  );
}

/** One experiment: its head, and a tab that is loaded once it is opened. */

import { useEffect } from 'preact/hooks';

import { shortened } from '../../shared/format';
import type { ExperimentId } from '../../shared/model';
import { shortName } from '../../shared/paths';
import { experimentDetail } from '../../shared/requests';
import { HOME, type Tab } from '../app/address';
import { useWorkspace } from '../app/context';
import { ChartsTab } from '../charts/chartsTab';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Link } from '../parts/link';
import { Empty, Loading } from '../parts/state';
import { TabList } from '../parts/tabs';
import { SearchTab } from '../search/searchTab';
import { CheckpointsTab } from './checkpoints';
import { CodeTab } from './code';
import { ConfigurationTab } from './configuration';
import { FilesTab } from './files';
import { Head } from './head';
import { LogsTab } from './logs';
import { NotesTab } from './notes';
import { Overview } from './overview';
import { ReportTab } from './report';
import { SystemTab } from './system';
import { missingTab, tabsOf } from './tabs';
import { TrialsTab } from './trials';
import { type LiveExperiment, useExperiment } from './useExperiment';

export function ExperimentPage({ id, tab }: { id: ExperimentId; tab: Tab }) {
  const { host } = useWorkspace();
  const live = useExperiment(id);
  const { view, gone, feed } = live;
  // The head comes before all that takes longer, such as many checkpoints.
  const first = useLoad(
    view.experiment === null ? `experiment ${id}` : null,
    signal => experimentDetail(host.transport.api, id, signal)
  );
  const name = view.experiment?.name ?? first.data?.name ?? '';
  useEffect(
    () =>
      // JupyterLab's status bar shows the title whole, and has room for no more.
      host.setTitle(
        `${shortName(id)} ${shortened(name)}`.trim(),
        `Experiment ${id}: ${name}`
      ),
    [host, id, name]
  );
  if (gone) {
    return (
      <Empty title={`Experiment ${id} was deleted.`}>
        <Link to={HOME}>All experiments</Link>
      </Empty>
    );
  }
  if (view.experiment === null) {
    return first.data !== null && view.connection.kind !== 'missing' ? (
      <div class="det-page-body det-exp" data-experiment={id}>
        <Head
          early
          live={{ ...live, view: { ...view, experiment: first.data } }}
        />
        <Loading rows={8} label={`Loading experiment ${id}…`} />
      </div>
    ) : (
      <NotKnown
        live={live}
        unknown={first.error?.status === 404 && first.error.state === 'refused'}
      />
    );
  }
  return (
    <div class="det-page-body det-exp" data-experiment={id}>
      <Head live={live} />
      <TabList label={`Experiment ${id}`} tabs={tabsOf(view)} current={tab} />
      <section class="det-exp-tab" data-tab={tab} key={tab}>
        {missingTab(view, tab) === null ? (
          <TabOf tab={tab} live={live} />
        ) : (
          <Empty title={missingTab(view, tab) ?? ''}>
            <Button onClick={() => feed.retry()}>Look again</Button>
          </Empty>
        )}
      </section>
    </div>
  );
}

/** Nothing is known of the experiment: it loads, there is none, or nobody can be asked. */
function NotKnown({
  live: { view, feed },
  unknown
}: {
  live: LiveExperiment;
  /** The master has said that there is none. */
  unknown: boolean;
}) {
  const { connection, id } = view;
  if (connection.kind === 'missing' || unknown) {
    return (
      <Empty title={`There is no experiment ${id}.`}>
        <p>It was deleted, or its number is that of another master.</p>
        <p>
          <Link to={HOME}>All experiments</Link>
        </p>
      </Empty>
    );
  }
  if (connection.kind === 'lost') {
    return (
      <Empty title={`Experiment ${id} cannot be shown now.`}>
        <p>
          {connection.message} {connection.remedy}
        </p>
        <Button onClick={() => feed.retry()}>Try now</Button>
        <p>
          <Link to={HOME}>All experiments</Link>
        </p>
      </Empty>
    );
  }
  return <Loading rows={8} label={`Loading experiment ${id}…`} />;
}

function TabOf({ tab, live }: { tab: Tab; live: LiveExperiment }) {
  const { view, feed } = live;
  switch (tab) {
    case 'overview':
      return <Overview live={live} />;
    case 'trials':
      return <TrialsTab view={view} />;
    case 'charts':
      return <ChartsTab view={view} feed={feed} />;
    case 'search':
      return <SearchTab view={view} feed={feed} />;
    case 'checkpoints':
      return <CheckpointsTab view={view} />;
    case 'code':
      return <CodeTab view={view} />;
    case 'configuration':
      return <ConfigurationTab view={view} />;
    case 'files':
      return <FilesTab view={view} />;
    case 'logs':
      return <LogsTab view={view} />;
    case 'system':
      return <SystemTab view={view} feed={feed} />;
    case 'notes':
      return <NotesTab live={live} />;
    case 'report':
      return <ReportTab view={view} />;
  }
}

/** The master: its slots and who holds them, its disk, schedules and messages. */

import { formatAgo, formatCount, formatDuration } from '../../shared/format';
import type { MasterInfo } from '../../shared/model';
import { masterInfo } from '../../shared/requests';
import { useApi, useTitle } from '../app/context';
import { useEvery } from '../data/useEvery';
import { useLoad } from '../data/useLoad';
import { ErrorBox } from '../parts/errorBox';
import { Loading } from '../parts/state';
import { Disk } from './disk';
import { Messages, Schedules } from './messages';
import { Nodes } from './nodes';
import { Slots } from './slots';

const SECONDS = 4;

export function ClusterPage() {
  useTitle('Cluster', 'Slots, disk, schedules and messages of the master');
  const api = useApi();
  const { data, error, loading, reload } = useLoad(
    'master',
    signal => masterInfo(api, signal),
    'all'
  );
  useEvery(SECONDS, reload);
  return (
    <div class="det-page-body det-cluster">
      <div class="det-page-head">
        <h1>Cluster</h1>
      </div>
      {error && (
        <ErrorBox
          title="The state of the master could not be loaded."
          error={error}
          onRetry={reload}
        />
      )}
      {data === null && loading && <Loading />}
      {data !== null && (
        <>
          <Facts info={data} />
          {(data.launcher ?? 'local') !== 'local' && (
            <section class="det-cluster-part">
              <h2>Machines</h2>
              <Nodes info={data} />
            </section>
          )}
          <section class="det-cluster-part">
            <h2>Slots</h2>
            <Slots info={data} />
          </section>
        </>
      )}
      <Disk />
      <Schedules />
      <Messages />
    </div>
  );
}

function Facts({ info }: { info: MasterInfo }) {
  const busy = info.slots.filter(
    ({ trial_id }) => typeof trial_id === 'number'
  ).length;
  const standbys = Object.entries(info.standbys ?? {}).filter(
    ([, count]) => count > 0
  );
  const up = (Date.now() - Date.parse(info.started)) / 1000;
  return (
    <>
      {info.outage && (
        <p class="det-cluster-bad" role="alert">
          {info.outage}
        </p>
      )}
      <dl class="det-facts">
        <dt>Master</dt>
        <dd>det_native {info.version}</dd>
        <dt>Running for</dt>
        <dd title={formatAgo(info.started)}>{formatDuration(up)}</dd>
        <dt>Slots</dt>
        <dd>
          {formatCount(busy)} of {formatCount(info.slots.length)} busy
        </dd>
        <dt>Experiments</dt>
        <dd>
          {formatCount(info.experiments)},{' '}
          {formatCount(info.active_experiments)} of them going on
        </dd>
        <dt>Warm processes</dt>
        <dd>
          {standbys.length === 0
            ? 'none'
            : standbys
                .map(([kind, count]) => `${formatCount(count)} for ${kind}`)
                .join(', ')}
        </dd>
        {info.dashboard && (
          <>
            <dt>Dashboard</dt>
            <dd>
              {/^https?:/.test(info.dashboard) ? (
                <a
                  href={info.dashboard}
                  target="_blank"
                  rel="noopener noreferrer"
                >
                  {info.dashboard}
                </a>
              ) : (
                info.dashboard
              )}
            </dd>
          </>
        )}
        <dt>Home</dt>
        <dd>
          <code>{info.home}</code>
        </dd>
        <dt>Python</dt>
        <dd>
          <code>{info.python}</code>
        </dd>
      </dl>
    </>
  );
}

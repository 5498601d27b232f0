/** Who trains, who waits for what, and in which order. */

import { useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { formatCount, formatLeft } from '../../shared/format';
import { changeExperiment } from '../../shared/requests';
import { useApi, useTitle, useWorkspace } from '../app/context';
import { useEvery } from '../data/useEvery';
import { useLoad } from '../data/useLoad';
import { ErrorBox } from '../parts/errorBox';
import { Empty, Loading } from '../parts/state';
import {
  groupsOf,
  prioritiesAfter,
  type Queue,
  type QueueEntry,
  startTimes
} from './queueFacts';
import { QueueTable } from './queueTable';

const SECONDS = 5;

export function QueuePage() {
  useTitle('Queue', 'Who trains and who waits');
  const api = useApi();
  const { data, error, loading, reload } = useLoad(
    'queue',
    signal => dataOf(api.GET('/api/v1/queue', { signal })),
    'all'
  );
  useEvery(SECONDS, reload);
  return (
    <div class="det-page-body det-queue">
      <div class="det-page-head">
        <h1>Queue</h1>
        {data && <p class="det-cluster-muted">{slotsLine(data)}</p>}
      </div>
      {error && (
        <ErrorBox
          title="The queue could not be loaded."
          error={error}
          onRetry={reload}
        />
      )}
      {data === null && loading && <Loading />}
      {data !== null && <Groups queue={data} reload={reload} />}
    </div>
  );
}

function slotsLine({ slots, free, entries }: Queue): string {
  const busy = `${formatCount(slots - free)} of ${formatCount(slots)} ${slots === 1 ? 'slot' : 'slots'} busy`;
  const ends = entries.flatMap(({ held = [], seconds_left: left }) =>
    held.length > 0 && typeof left === 'number' ? [left] : []
  );
  return free === 0 && ends.length > 0
    ? `${busy}; the next is free in ${formatLeft(Math.min(...ends))}`
    : busy;
}

function Groups({ queue, reload }: { queue: Queue; reload: () => void }) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const [busy, setBusy] = useState(false);
  const { running, waiting, paused } = groupsOf(queue);
  const starts = startTimes(queue);
  const ordered = queue.policy === 'priority';

  async function setPriorities(
    priorities: ReadonlyMap<number, number>
  ): Promise<void> {
    setBusy(true);
    try {
      for (const [id, priority] of priorities) {
        await changeExperiment(api, id, { resources: { priority } });
      }
    } catch (error) {
      toasts.error(error);
    } finally {
      setBusy(false);
      reload();
    }
  }

  function move(from: number, to: number): void {
    const priorities = prioritiesAfter(waiting, from, to);
    if (priorities === null) {
      toasts.error(
        new Error('No priority is left for this place; set one by hand.')
      );
    } else {
      void setPriorities(priorities);
    }
  }

  if (queue.entries.length === 0) {
    return (
      <Empty title="Nothing trains and nothing waits.">
        Submit an experiment from a notebook; it appears here.
      </Empty>
    );
  }
  const shared = {
    busy,
    ordered,
    reload,
    onPriority: (entry: QueueEntry, priority: number) =>
      void setPriorities(new Map([[entry.id, priority]]))
  };
  return (
    <>
      {!ordered && (
        <p class="det-cluster-muted">
          All experiments take turns by their weights (fair share): priorities
          do not count, and there is no order to change.
        </p>
      )}
      <QueueTable title="Running" entries={running} {...shared} />
      <QueueTable
        title="Waiting"
        entries={waiting}
        starts={starts}
        onMove={ordered ? move : undefined}
        {...shared}
      />
      <QueueTable title="Paused" entries={paused} {...shared} />
      {queue.more > 0 && (
        <p class="det-cluster-muted">
          {formatCount(queue.more)} more experiments are not listed here.
        </p>
      )}
    </>
  );
}

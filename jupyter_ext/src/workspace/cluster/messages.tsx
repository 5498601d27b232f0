/** Schedules, which can be paused and ended, and the messages that went out. */

import { useRef } from 'preact/hooks';

import type { components } from '../../generated/rest';
import { dataOf } from '../../shared/api';
import { formatAgo, formatCount } from '../../shared/format';
import { experimentAddress } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { IconButton } from '../parts/button';
import { confirm } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Link } from '../parts/link';
import { Loading } from '../parts/state';

type Schedule = components['schemas']['Schedule'];
type Message = components['schemas']['MessageInfo'];

const MESSAGES = 20;

export function Schedules() {
  const api = useApi();
  const { toasts } = useWorkspace();
  const root = useRef<HTMLElement>(null);
  const { data, error, loading, reload } = useLoad(
    'schedules',
    signal => dataOf(api.GET('/api/v1/schedules', { signal })),
    'all'
  );
  const change = async (request: () => Promise<unknown>) => {
    try {
      await request();
    } catch (problem) {
      toasts.error(problem);
    }
    reload();
  };
  const end = async ({ id, name }: Schedule) => {
    const agreed = await confirm(root.current!, {
      title: `End the schedule of ${name}?`,
      body: 'It runs its notebook no more. A run that goes on ends by itself.',
      action: 'End schedule',
      danger: true
    });
    if (agreed) {
      await change(() =>
        dataOf(api.DELETE('/api/v1/schedules/{schedule_id}', ofSchedule(id)))
      );
    }
  };
  return (
    <section class="det-cluster-part" ref={root}>
      <h2>Schedules</h2>
      {error && (
        <ErrorBox
          title="The schedules could not be loaded."
          error={error}
          onRetry={reload}
        />
      )}
      {data === null && loading && <Loading rows={2} />}
      {data?.length === 0 && (
        <p class="det-cluster-muted">
          No notebook is run at a time:{' '}
          <code>det submit NOTEBOOK --every 1d</code> does that.
        </p>
      )}
      {data !== null && data.length > 0 && (
        <Scroll label="Schedules">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">When</th>
              <th scope="col">Next</th>
              <th scope="col" class="det-number">
                Runs
              </th>
              <th scope="col">
                <span class="det-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map(schedule => {
              const paused = schedule.state === 'PAUSED';
              const verb = paused ? 'resume' : 'pause';
              return (
                <tr key={schedule.id}>
                  <td title={schedule.path}>{schedule.name}</td>
                  <td>{timingText(schedule)}</td>
                  <td>
                    {paused ? 'paused' : timeText(schedule.next)}
                    {schedule.error && (
                      <div class="det-cluster-bad">{schedule.error}</div>
                    )}
                  </td>
                  <td class="det-number">
                    {formatCount(schedule.submitted)}
                    {schedule.last_run !== null &&
                      ` (last: run ${schedule.last_run}${schedule.last_outcome && `, ${schedule.last_outcome}`})`}
                  </td>
                  <td>
                    <IconButton
                      icon={paused ? 'play' : 'pause'}
                      label={`${paused ? 'Resume' : 'Pause'} the schedule of ${schedule.name}`}
                      onClick={() =>
                        void change(() =>
                          dataOf(
                            api.POST(
                              `/api/v1/schedules/{schedule_id}/${verb}`,
                              ofSchedule(schedule.id)
                            )
                          )
                        )
                      }
                    />
                    <IconButton
                      icon="trash"
                      label={`End the schedule of ${schedule.name}`}
                      onClick={() => void end(schedule)}
                    />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </Scroll>
      )}
    </section>
  );
}

function ofSchedule(id: number) {
  return { params: { path: { schedule_id: id } } };
}

function timingText({ timing }: Schedule): string {
  const zone = timing.timezone ? ` (${timing.timezone})` : '';
  return timing.at
    ? `at ${timeText(timing.at)}${zone}`
    : `every ${timing.every ?? ''}${zone}`;
}

function timeText(time: string | null): string {
  return time === null ? '—' : new Date(time).toLocaleString();
}

export function Messages() {
  const api = useApi();
  const { data, error, loading, reload } = useLoad(
    'messages',
    signal =>
      dataOf(
        api.GET('/api/v1/messages', {
          params: { query: { limit: MESSAGES } },
          signal
        })
      ),
    'all'
  );
  return (
    <section class="det-cluster-part">
      <h2>Messages</h2>
      {error && (
        <ErrorBox
          title="The messages could not be loaded."
          error={error}
          onRetry={reload}
        />
      )}
      {data === null && loading && <Loading rows={2} />}
      {data?.length === 0 && (
        <p class="det-cluster-muted">
          No message was sent: <code>det notify</code> has the master send mails
          and webhooks when experiments end.
        </p>
      )}
      {data !== null && data.length > 0 && (
        <Scroll label="Messages">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">About</th>
              <th scope="col">To</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {data.map(message => (
              <tr key={message.id}>
                <td>{formatAgo(message.created)}</td>
                <td>
                  {message.experiment_id !== null && (
                    <Link to={experimentAddress(message.experiment_id)}>
                      #{message.experiment_id}
                    </Link>
                  )}{' '}
                  {message.event}
                </td>
                <td>{targetText(message)}</td>
                <td>
                  {message.state.toLowerCase()}
                  {message.error && (
                    <div class="det-cluster-bad">{message.error}</div>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </Scroll>
      )}
    </section>
  );
}

function targetText({ target }: Message): string {
  const { name, kind, type } = target;
  return [name, kind, type].find(part => typeof part === 'string') ?? '';
}

function Scroll({
  label,
  children
}: {
  label: string;
  children: preact.ComponentChildren;
}) {
  return (
    <div
      class="det-cluster-scroll"
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <table class="det-grid" aria-label={label}>
        {children}
      </table>
    </div>
  );
}

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { AllExperiments } from '../../src/shared/allExperiments';
import { RequestError } from '../../src/shared/transport';
import { experiment, status, streamEvent } from './examples';
import { ScriptedTransport } from './scriptedTransport';

const feeds: AllExperiments[] = [];

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  feeds.splice(0).forEach(feed => feed.dispose());
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);
const created = (minute: number) => `2026-11-20T11:${minute}:00Z`;

async function follow(answers: Readonly<Record<string, unknown>> = {}) {
  const transport = new ScriptedTransport({
    status: status(),
    'master/experiments': [
      experiment({ id: 8, created: created(40) }),
      experiment({ id: 7, created: created(20) })
    ],
    'local/experiments': [
      experiment({ id: 'local-2', created: created(30) }),
      experiment({ id: 'local-1', created: created(10) })
    ],
    ...answers
  });
  const feed = new AllExperiments(transport);
  feeds.push(feed);
  feed.resume();
  await settle();
  return { transport, feed };
}

const ids = (feed: AllExperiments) => feed.view.experiments.map(({ id }) => id);

describe('all experiments', () => {
  it('are those of the master and of this machine, newest first', async () => {
    const { feed } = await follow();
    expect(ids(feed)).toEqual([8, 'local-2', 7, 'local-1']);
  });

  it("are this machine's alone without a master", async () => {
    const none = status({ state: 'none', can_start: true });
    const { feed, transport } = await follow({ status: none });
    expect(ids(feed)).toEqual(['local-2', 'local-1']);
    expect(feed.view.status?.state).toBe('none');
    expect(transport.requests.join()).not.toContain('start');
  });

  it("are the master's alone where the server tells no others", async () => {
    const absent = new RequestError('Not there.', 404, 'absent');
    const { feed } = await follow({ 'local/experiments': absent });
    expect(ids(feed)).toEqual([8, 7]);
    expect(feed.view.connection.kind).toBe('live');
  });

  it('change as events tell, a new one in its place', async () => {
    const { feed, transport } = await follow();
    const stream = transport.newestOf('local/events');
    const ended = experiment({
      id: 'local-2',
      created: created(30),
      state: 'CANCELED'
    });
    const fresh = experiment({ id: 'local-3', created: created(50) });
    for (const each of [ended, fresh]) {
      stream.send(streamEvent('experiment', each));
    }
    await settle();
    expect(ids(feed)).toEqual(['local-3', 8, 'local-2', 7, 'local-1']);
    expect(feed.view.experiments[2]?.state).toBe('CANCELED');
  });

  it('cause no request while they are hidden, and are loaded anew on demand', async () => {
    const { feed, transport } = await follow();
    feed.pause();
    await settle();
    expect(transport.streams.map(({ over }) => over)).toEqual([true, true]);
    transport.forget();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
    feed.resume();
    feed.refresh();
    await settle();
    expect(transport.requests).toContain('GET local/experiments');
  });
});

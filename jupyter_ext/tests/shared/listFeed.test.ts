import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ExperimentListFeed, withExperiment } from '../../src/shared/listFeed';
import type { MasterState } from '../../src/shared/model';
import { RequestError } from '../../src/shared/transport';
import { detail, experiment, NOW, status, streamEvent } from './examples';
import { AWAY, held, ScriptedTransport } from './scriptedTransport';

const LIST = 'master/experiments';

const feeds: ExperimentListFeed[] = [];

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  feeds.splice(0).forEach(feed => feed.dispose());
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

function follow(experiments = [experiment({ id: 8 }), experiment()]) {
  const transport = new ScriptedTransport({
    status: status(),
    [LIST]: experiments
  });
  const feed = new ExperimentListFeed(transport);
  feeds.push(feed);
  return { transport, feed };
}

async function live() {
  const found = follow();
  found.feed.resume();
  await settle();
  expect(found.feed.view.connection.kind).toBe('live');
  found.transport.forget();
  return found;
}

const ids = (feed: ExperimentListFeed) =>
  feed.view.experiments.map(({ id }) => id);

describe('the list of experiments', () => {
  it('asks for nothing before it is seen', async () => {
    const { transport, feed } = follow();
    const listener = vi.fn();
    feed.subscribe(listener);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
    expect(listener.mock.calls).toEqual([
      [{ status: null, experiments: [], connection: { kind: 'resting' } }]
    ]);
  });

  it('looks for the master, opens the stream, then loads', async () => {
    const { transport, feed } = follow();
    feed.resume();
    expect(feed.view.connection.kind).toBe('connecting');
    await settle();
    expect(transport.requests).toEqual([
      'GET status',
      'STREAM master/events?tail=true',
      'GET master/experiments?limit=500'
    ]);
    expect(feed.view.status).toEqual(status());
    expect(ids(feed)).toEqual([8, 7]);
  });

  it('tells how many there are besides those that it asks for', async () => {
    const many = Array.from({ length: 500 }, (_, index) =>
      experiment({ id: 600 - index })
    );
    const { transport, feed } = follow(many);
    transport.answers.set('master/master', { experiments: 620 });
    feed.resume();
    await settle();
    expect(feed.view.experiments.length).toBe(500);
    expect(feed.view.others).toBe(120);
  });

  it('shows at once what an event says of an experiment, a new one in its place', async () => {
    const { transport, feed } = await live();
    transport.newest.send(
      streamEvent('experiment', experiment({ id: 9, name: 'new' }), null, 9),
      streamEvent('experiment', experiment({ state: 'PAUSED' }), null)
    );
    await settle();
    expect(ids(feed)).toEqual([9, 8, 7]);
    expect(feed.view.experiments[2]?.state).toBe('PAUSED');
  });

  it('asks for those alone of which events tell, each once however many there are', async () => {
    const { transport, feed } = await live();
    transport.answers.set(`${LIST}/7`, experiment({ progress: 0.9 }));
    for (let batch = 0; batch < 100; batch++) {
      transport.newest.send(streamEvent('metrics', { batch }));
    }
    await vi.advanceTimersByTimeAsync(1499);
    expect(transport.requests).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(transport.requests).toEqual([`GET ${LIST}/7`]);
    expect(feed.view.experiments[1]?.progress).toBe(0.9);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toHaveLength(1);
  });

  it('asks for nothing when there are rows of training metrics, but for a validation', async () => {
    const { transport } = await live();
    transport.answers.set(`${LIST}/7`, experiment());
    transport.newest.send(streamEvent('metrics', { kind: 'training' }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
    transport.newest.send(streamEvent('metrics', { kind: 'validation' }));
    await vi.advanceTimersByTimeAsync(1500);
    expect(transport.requests).toEqual([`GET ${LIST}/7`]);
  });

  it('asks again for what happened while it was asking', async () => {
    const { transport } = await live();
    const slow = held<unknown>();
    transport.answers.set(`${LIST}/7`, slow.promise);
    transport.newest.send(streamEvent('metrics', {}));
    await vi.advanceTimersByTimeAsync(1500);
    transport.newest.send(streamEvent('metrics', {}));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(transport.requests).toHaveLength(1);
    slow.release(experiment());
    await vi.advanceTimersByTimeAsync(1500);
    expect(transport.requests).toEqual([`GET ${LIST}/7`, `GET ${LIST}/7`]);
  });

  it('causes no request while it is hidden, whatever had been told', async () => {
    const { transport, feed } = await live();
    transport.newest.send(streamEvent('metrics', {}));
    await settle();
    feed.pause();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(transport.requests).toEqual([]);
    expect(transport.newest.over).toBe(true);
    expect(feed.view.connection.kind).toBe('resting');
    expect(ids(feed)).toEqual([8, 7]);
    feed.resume();
    await settle();
    expect(transport.requests).toHaveLength(3);
    expect(feed.view.connection.kind).toBe('live');
  });

  it('waits once for what was told after it was hidden and shown in the middle of asking', async () => {
    const { transport, feed } = await live();
    const slow = held<unknown>();
    transport.answers.set(`${LIST}/7`, slow.promise);
    transport.newest.send(streamEvent('metrics', {}));
    await vi.advanceTimersByTimeAsync(1500);
    feed.pause();
    feed.resume();
    await settle();
    transport.newest.send(streamEvent('metrics', {}));
    await settle();
    slow.release(experiment());
    await settle();
    expect(vi.getTimerCount()).toBe(1);
  });

  it('is loaded anew on demand', async () => {
    const { transport, feed } = await live();
    transport.answers.set(LIST, []);
    feed.refresh();
    await settle();
    expect(ids(feed)).toEqual([]);
    expect(transport.streams.map(stream => stream.over)).toEqual([true, false]);
  });

  it('loses an experiment that is gone, not the connection', async () => {
    const { transport, feed } = await live();
    const [gone = 0, ...others] = ids(feed);
    others.forEach(id =>
      transport.answers.set(`master/experiments/${id}`, experiment({ id }))
    );
    const message = `There is no experiment ${gone}.`;
    transport.answers.set(
      `master/experiments/${gone}`,
      new RequestError(message, 404, 'refused')
    );
    for (const id of [gone, ...others]) {
      transport.newest.send(streamEvent('metrics', {}, 3, id));
    }
    await vi.advanceTimersByTimeAsync(1500);
    expect(feed.view.connection.kind).toBe('live');
    expect(ids(feed)).toEqual(others);
  });

  it('is lost if one experiment cannot be asked for', async () => {
    const { transport, feed } = await live();
    transport.answers.set(
      'master/experiments/7',
      new RequestError('Not now.', 500, 'refused')
    );
    transport.newest.send(streamEvent('metrics', {}));
    await vi.advanceTimersByTimeAsync(1500);
    expect(feed.view.connection).toMatchObject({
      kind: 'lost',
      state: 'refused'
    });
  });

  it('leaves nothing when it is disposed', async () => {
    const { transport, feed } = await live();
    const listener = vi.fn();
    feed.subscribe(listener);
    transport.newest.send(streamEvent('metrics', {}));
    await settle();
    listener.mockClear();
    feed.dispose();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
    expect(transport.newest.over).toBe(true);
    expect(listener).not.toHaveBeenCalled();
  });
});

describe('the master', () => {
  const states = [
    'none',
    'starting',
    'unauthorised',
    'mismatch',
    'unreachable'
  ] as const;

  it.each(states satisfies readonly MasterState[])(
    'that is %s is told as such from the first, not as a loss',
    async state => {
      const { transport, feed } = follow();
      transport.answers.set(
        'status',
        status({ state, message: 'Why.', remedy: 'What to do.' })
      );
      feed.resume();
      await settle();
      expect(feed.view.connection).toEqual({ kind: 'connecting' });
      expect(feed.view.status).toMatchObject({
        state,
        message: 'Why.',
        remedy: 'What to do.'
      });
      expect(transport.requests).toEqual(['GET status']);
    }
  );

  it('that goes away is lost since then, with its state and its words', async () => {
    const { transport, feed } = await live();
    vi.setSystemTime(NOW);
    transport.answers.set('status', AWAY);
    transport.newest.break(AWAY);
    await settle();
    const lost = {
      kind: 'lost',
      since: NOW,
      state: 'unreachable',
      message: AWAY.message
    };
    expect(feed.view.connection).toMatchObject(lost);
    expect(feed.view.status).toMatchObject({
      state: 'unreachable',
      version: '0.1.0'
    });
    expect(ids(feed)).toEqual([8, 7]);
    await vi.advanceTimersByTimeAsync(5000);
    expect(feed.view.connection).toMatchObject(lost);
    transport.answers.set('status', status());
    feed.retry();
    await settle();
    expect(feed.view.connection).toEqual({ kind: 'live' });
    expect(feed.view.status?.state).toBe('running');
  });

  it('that is behind a server without our extension is a loss with its own words', async () => {
    const { transport, feed } = follow();
    transport.answers.set(
      'status',
      new RequestError('Not loaded.', 404, 'absent', 'Enable it.')
    );
    feed.resume();
    await settle();
    expect(feed.view.connection).toMatchObject({
      kind: 'lost',
      state: 'absent'
    });
    expect(feed.view.status).toBeNull();
  });

  it('that cannot be asked for at the first try is known as unreachable', async () => {
    const { transport, feed } = follow();
    transport.answers.set('status', AWAY);
    feed.resume();
    await settle();
    expect(feed.view.status).toEqual({
      state: 'unreachable',
      message: AWAY.message,
      remedy: AWAY.remedy,
      version: '',
      protocol: 0,
      master: null,
      can_start: false
    });
  });

  it('that starts is looked for every 0.7 s, without longer and longer pauses', async () => {
    const { transport, feed } = follow();
    transport.answers.set('status', status({ state: 'starting' }));
    feed.resume();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(transport.requests.length).toBeGreaterThanOrEqual(28);
    transport.answers.set('status', status());
    await vi.advanceTimersByTimeAsync(700);
    expect(feed.view.connection.kind).toBe('live');
  });

  it('is not looked for any more once the list is hidden, not even while it starts', async () => {
    const { transport, feed } = follow();
    transport.answers.set('status', status({ state: 'starting' }));
    feed.resume();
    await settle();
    feed.pause();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toHaveLength(1);
  });

  it('is started on demand, and followed at once', async () => {
    const { transport, feed } = follow();
    transport.answers.set('status', status({ state: 'none', can_start: true }));
    feed.resume();
    await settle();
    transport.answers.set('start', status({ message: 'Started.' }));
    transport.answers.set('status', status());
    const started = feed.start();
    await settle();
    await started;
    expect(transport.requests).toContain('POST start');
    expect(feed.view.connection.kind).toBe('live');
  });

  it('that cannot be started says why', async () => {
    const { transport, feed } = follow();
    transport.answers.set(
      'start',
      new RequestError('No room.', 500, 'refused')
    );
    await expect(feed.start()).rejects.toThrow('No room.');
    expect(feed.view.status).toBeNull();
  });
});

describe('an experiment in a list that is newest first', () => {
  const list = [9, 7, 5].map(id => experiment({ id }));

  it.each([
    [10, [10, 9, 7, 5]],
    [8, [9, 8, 7, 5]],
    [1, [9, 7, 5, 1]],
    [7, [9, 7, 5]]
  ])('%i has its place', (id, expected) => {
    const found = withExperiment(list, experiment({ id, name: 'put' }));
    expect(found.map(each => each.id)).toEqual(expected);
    expect(found.find(each => each.id === id)?.name).toBe('put');
    expect(list.map(each => each.id)).toEqual([9, 7, 5]);
  });

  it('is the first of an empty one', () => {
    expect(withExperiment([], detail())).toEqual([detail()]);
  });
});

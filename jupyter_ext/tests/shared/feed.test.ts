import { describe, expect, it, vi } from 'vitest';

import type { ExperimentDetail, ExperimentView } from '../../src/shared/model';
import { RequestError } from '../../src/shared/transport';
import {
  artifact,
  checkpoint,
  curve,
  detail,
  experiment,
  logLine,
  medium,
  streamEvent,
  systemSample,
  trial
} from './examples';
import { AWAY, held } from './scriptedTransport';

import * as followed from './followedFeed';
const { CURVES, EXPERIMENT, FILES, LOGS, MEDIA, SYSTEM } = followed;
const { follow, live, settle } = followed;
describe('an experiment that is followed', () => {
  it('is connecting, then live with all its parts', async () => {
    const { transport, feed, views } = follow();
    expect(feed.view).toMatchObject({
      id: 7,
      connection: { kind: 'connecting' }
    });
    await settle();
    expect(transport.requests).toEqual([
      'STREAM master/events?experiment_id=7&tail=true',
      `GET ${EXPERIMENT}`,
      `GET ${EXPERIMENT}/trials`,
      `GET ${EXPERIMENT}/checkpoints`,
      `GET ${CURVES}?buckets=500&trials=50`,
      `GET ${LOGS}?last=50`,
      `GET ${SYSTEM}?points=250`,
      `GET ${MEDIA}?after=0&limit=1000`,
      `GET ${FILES}`
    ]);
    expect(feed.view).toEqual({
      id: 7,
      trialId: 0,
      experiment: detail(),
      trials: [trial()],
      checkpoints: [checkpoint()],
      curves: [curve()],
      logs: [logLine('one')],
      log: { trialId: 3, chosen: false, atBegin: true },
      system: { trialId: 3, samples: [systemSample()] },
      outputs: {
        trialId: 3,
        chosen: false,
        media: [medium()],
        files: [artifact()]
      },
      connection: { kind: 'live' }
    });
    expect(views[0]?.connection.kind).toBe('connecting');
    expect(views.at(-1)).toBe(feed.view);
  });

  it('of one trial asks for that trial alone', async () => {
    const { transport } = follow(3);
    await settle();
    expect(transport.requests).toEqual([
      'STREAM master/events?experiment_id=7&tail=true',
      `GET ${EXPERIMENT}`,
      'GET master/trials/3',
      'GET master/trials/3/checkpoints',
      'GET master/trials/3/curves?buckets=1000',
      `GET ${LOGS}?last=50`,
      `GET ${SYSTEM}?points=250`,
      `GET ${MEDIA}?after=0&limit=1000`,
      `GET ${FILES}`
    ]);
  });

  it('shows an event at once, and asks for its curves once a second however many there are', async () => {
    const { transport, feed } = await live();
    for (let batch = 41; batch <= 60; batch++) {
      transport.newest.send(streamEvent('metrics', { batch }));
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(feed.view.trials[0]?.batches).toBe(60);
    expect(
      transport.requests.filter(each => each.includes('/curves'))
    ).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(
      transport.requests.filter(each => each.includes('/curves'))
    ).toHaveLength(1);
  });

  it('asks for the best values of trials after a validation, and only then', async () => {
    const { transport, feed } = await live();
    transport.answers.set(`${EXPERIMENT}/trials`, [
      trial({ best_validation: 0.25, batches: 1 })
    ]);
    const valued = checkpoint({ metrics: { error: 0.25 } });
    transport.answers.set(`${EXPERIMENT}/checkpoints`, [valued]);
    transport.newest.send(
      streamEvent('metrics', { kind: 'training', batch: 50 })
    );
    await vi.advanceTimersByTimeAsync(1000);
    expect(transport.requests).not.toContain(`GET ${EXPERIMENT}/trials`);
    transport.newest.send(
      streamEvent('metrics', { kind: 'validation', batch: 51 })
    );
    await vi.advanceTimersByTimeAsync(1000);
    expect(transport.requests).toContain(`GET ${EXPERIMENT}/trials`);
    expect(feed.view.trials[0]).toMatchObject({
      best_validation: 0.25,
      batches: 51
    });
    expect(feed.view.checkpoints[0]?.metrics).toEqual({ error: 0.25 });
  });

  it('asks every three seconds for what no event tells of, and not for curves then', async () => {
    const { transport, feed } = await live();
    transport.answers.set(EXPERIMENT, detail({ seconds_left: 5 }));
    transport.answers.set(LOGS, [logLine('one'), logLine('two', 2)]);
    await vi.advanceTimersByTimeAsync(2999);
    expect(transport.requests).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(transport.requests).toEqual([
      `GET ${EXPERIMENT}`,
      `GET ${LOGS}?last=2000&after=1`
    ]);
    expect(feed.view.experiment?.seconds_left).toBe(5);
    expect(feed.view.logs).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(transport.requests).toHaveLength(27);
  });

  it('keeps curves that came before until new ones are there', async () => {
    const { transport, feed } = await live();
    const before = feed.view.curves;
    const later = held<unknown>();
    transport.answers.set(CURVES, later.promise);
    transport.newest.send(streamEvent('metrics', { batch: 50 }));
    await vi.advanceTimersByTimeAsync(1500);
    expect(feed.view.curves).toBe(before);
    later.release([curve({ mean: [9, 9, 9] })]);
    await settle();
    expect(feed.view.curves[0]?.mean).toEqual([9, 9, 9]);
  });

  it('asks again for curves that were reported while it was asking', async () => {
    const { transport } = await live();
    const first = held<unknown>();
    transport.answers.set(CURVES, first.promise);
    transport.newest.send(streamEvent('metrics', { batch: 50 }));
    await vi.advanceTimersByTimeAsync(1000);
    transport.newest.send(streamEvent('metrics', { batch: 51 }));
    await settle();
    transport.answers.set(CURVES, [curve()]);
    first.release([curve()]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(
      transport.requests.filter(each => each.includes('/curves'))
    ).toHaveLength(2);
  });

  it('asks the more seldom for curves the longer they take', async () => {
    const { transport } = await live();
    const slow = held<unknown>();
    transport.answers.set(CURVES, slow.promise);
    transport.newest.send(streamEvent('metrics', { batch: 50 }));
    await vi.advanceTimersByTimeAsync(1000 + 4000);
    transport.answers.set(CURVES, [curve()]);
    slow.release([curve()]);
    await settle();
    transport.forget();
    const asked = () =>
      transport.requests.filter(each => each.includes('/curves')).length;
    transport.newest.send(streamEvent('metrics', { batch: 51 }));
    await vi.advanceTimersByTimeAsync(7999);
    expect(asked()).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked()).toBe(1);
  });

  it('tells nothing to who has gone', async () => {
    const { transport, feed } = await live();
    const listener = vi.fn();
    const end = feed.subscribe(listener);
    expect(listener).toHaveBeenCalledTimes(1);
    end();
    transport.newest.send(streamEvent('trial', trial({ batches: 99 })));
    await settle();
    expect(feed.view.trials[0]?.batches).toBe(99);
    expect(listener).toHaveBeenCalledTimes(1);
  });
});

describe('an experiment that is hidden', () => {
  it('causes no request at all, and comes back whole', async () => {
    const { transport, feed } = await live();
    transport.newest.send(streamEvent('metrics', { batch: 50 }));
    await settle();
    feed.pause();
    feed.pause();
    expect(feed.view.connection).toEqual({ kind: 'resting' });
    expect(feed.view.experiment).not.toBeNull();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(transport.requests).toEqual([]);
    expect(transport.newest.over).toBe(true);
    feed.resume();
    feed.resume();
    await settle();
    expect(transport.requests).toHaveLength(9);
    expect(feed.view.connection).toEqual({ kind: 'live' });
  });

  it('from its beginning asks for nothing', async () => {
    const { transport, feed } = follow();
    feed.pause();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
  });

  it('while it refreshes does not take the answer for being back', async () => {
    const { transport, feed } = await live();
    const late = held<ExperimentDetail>();
    transport.answers.set(EXPERIMENT, late.promise);
    await vi.advanceTimersByTimeAsync(3000);
    feed.pause();
    late.release(detail({ name: 'late' }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(feed.view.experiment?.name).toBe('digits');
    expect(feed.view.connection.kind).toBe('resting');
  });
});

describe('a connection that is lost', () => {
  it('is told with its words and since when, and what was known stays', async () => {
    vi.setSystemTime('2026-11-20T12:00:00Z');
    const { transport, feed } = await live();
    transport.refusal = AWAY;
    transport.newest.break();
    await settle();
    const lost = {
      kind: 'lost',
      since: Date.parse('2026-11-20T12:00:00Z'),
      state: 'unreachable',
      message: 'The master does not answer.',
      remedy: 'Wait.'
    };
    expect(feed.view.connection).toEqual(lost);
    expect(feed.view.curves).toEqual([curve()]);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(feed.view.connection).toEqual(lost);
  });

  it('comes back by itself with what has happened meanwhile, and counts anew', async () => {
    const { transport, feed, views } = await live();
    transport.newest.break();
    await settle();
    const first = Date.now();
    transport.answers.set(`${EXPERIMENT}/trials`, [trial({ batches: 80 })]);
    await vi.advanceTimersByTimeAsync(500);
    expect(feed.view.connection.kind).toBe('live');
    expect(feed.view.trials).toEqual([trial({ batches: 80 })]);
    expect(views.filter(each => each.connection.kind === 'lost')).not.toEqual(
      []
    );
    await vi.advanceTimersByTimeAsync(10_000);
    transport.newest.break();
    await settle();
    expect(feed.view.connection).toHaveProperty('since', first + 10_500);
  });

  it('is tried at once on demand', async () => {
    const { transport, feed } = await live();
    transport.refusal = AWAY;
    transport.newest.break();
    await vi.advanceTimersByTimeAsync(8000);
    transport.refusal = null;
    feed.retry();
    await settle();
    expect(feed.view.connection.kind).toBe('live');
  });

  it('is noticed by a refresh that fails as well', async () => {
    const { transport, feed } = await live();
    transport.answers.set(
      LOGS,
      new RequestError('No log.', 500, 'refused', 'Look.')
    );
    await vi.advanceTimersByTimeAsync(3000);
    expect(feed.view.connection).toMatchObject({
      kind: 'lost',
      message: 'No log.'
    });
    expect(transport.newest.over).toBe(true);
  });
});

describe('an action', () => {
  it('shows what the master answers, and asks how things are at once', async () => {
    const { transport, feed } = await live();
    transport.answers.set(`${EXPERIMENT}/pause`, { state: 'PAUSED' });
    transport.answers.set(
      EXPERIMENT,
      detail({ state: 'PAUSED', progress: 0.5 })
    );
    const acted = feed.act('pause');
    await settle();
    await acted;
    expect(transport.requests[0]).toBe(`POST ${EXPERIMENT}/pause`);
    expect(transport.requests[1]).toBe(`GET ${EXPERIMENT}`);
    expect(feed.view.experiment).toEqual(
      detail({ state: 'PAUSED', progress: 0.5 })
    );
  });

  it('that is refused rejects in words, and changes nothing', async () => {
    const { transport, feed } = await live();
    const refusal = new RequestError('It has ended.', 409, 'refused');
    transport.answers.set(`${EXPERIMENT}/stop`, refusal);
    const before = feed.view;
    await expect(feed.act('stop')).rejects.toBe(refusal);
    expect(feed.view).toBe(before);
  });

  it('with nothing to say of it is no state', async () => {
    const { transport, feed } = await live();
    transport.answers.set(`${EXPERIMENT}/stop`, null);
    const acted = feed.act('stop');
    await settle();
    await acted;
    expect(feed.view.experiment).toEqual(detail());
  });
});

describe('an answer that comes late', () => {
  /** A feed in the midst of a look at how things are, whose details wait. */
  async function looking(change: Partial<ExperimentDetail> = {}) {
    const found = await live();
    const { transport, feed } = found;
    transport.newest.send(
      streamEvent('experiment', experiment({ state: 'PAUSED' }))
    );
    await settle();
    const late = held<unknown>();
    transport.answers.set(EXPERIMENT, late.promise);
    await vi.advanceTimersByTimeAsync(3000);
    expect(transport.requests).toContain(`GET ${EXPERIMENT}`);
    expect(feed.view.experiment?.state).toBe('PAUSED');
    transport.answers.set(EXPERIMENT, detail({ state: 'ACTIVE', ...change }));
    transport.forget();
    return { ...found, late: () => late.release(detail({ state: 'PAUSED' })) };
  }

  const states = (views: readonly ExperimentView[]) =>
    views.map(view => view.experiment?.state);

  it('to what was asked before an action does not undo it, and how things are is asked anew', async () => {
    const { transport, feed, views, late } = await looking({ progress: 0.75 });
    transport.answers.set(`${EXPERIMENT}/resume`, { state: 'ACTIVE' });
    await feed.act('resume');
    const begin = views.length - 1;
    await settle();
    expect(transport.requests).toContain(`GET ${EXPERIMENT}`);
    expect(feed.view.experiment?.progress).toBe(0.75);
    late();
    await settle();
    expect(new Set(states(views.slice(begin)))).toEqual(new Set(['ACTIVE']));
    expect(feed.view.experiment?.progress).toBe(0.75);
  });

  it('to what was asked before an event does not undo it', async () => {
    const { transport, feed, late } = await looking();
    transport.newest.send(
      streamEvent('experiment', experiment({ state: 'ACTIVE' }))
    );
    await settle();
    late();
    await settle();
    expect(feed.view.experiment?.state).toBe('ACTIVE');
  });

  it('of an action does not undo what an event told meanwhile', async () => {
    const { transport, feed } = await live();
    const late = held<unknown>();
    transport.answers.set(`${EXPERIMENT}/stop`, late.promise);
    const ended = experiment({ state: 'CANCELED' });
    transport.answers.set(EXPERIMENT, detail({ state: 'CANCELED' }));
    const acted = feed.act('stop');
    await settle();
    transport.newest.send(streamEvent('experiment', ended));
    await settle();
    late.release({ state: 'STOPPING_CANCELED' });
    await acted;
    expect(feed.view.experiment?.state).toBe('CANCELED');
  });

  it('does not hold up what is there already', async () => {
    const { transport, feed } = await live();
    const late = held<unknown>();
    transport.answers.set(CURVES, late.promise);
    transport.answers.set(EXPERIMENT, detail({ progress: 0.75 }));
    transport.newest.send(streamEvent('metrics', { batch: 50 }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(feed.view.experiment?.progress).toBe(0.75);
    late.release([]);
    await settle();
    expect(feed.view.curves).toEqual([]);
  });
});

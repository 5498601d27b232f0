import { describe, expect, it, vi } from 'vitest';

import { detail, logLine, streamEvent } from './examples';
import { EXPERIMENT, follow, live, LOGS, settle } from './followedFeed';
import { AWAY, held, type ScriptedTransport } from './scriptedTransport';

describe('the end of an experiment', () => {
  const ENDED = detail({ state: 'COMPLETED', ended: '2026-11-20T12:00:00Z' });

  async function end(transport: ScriptedTransport): Promise<void> {
    transport.answers.set(EXPERIMENT, ENDED);
    transport.answers.set(LOGS, [logLine('last', 9)]);
    transport.newest.send(
      streamEvent('experiment', { state: 'COMPLETED' }, null)
    );
    await settle();
  }

  it('is told after everything was loaded once more, and then nothing is asked for', async () => {
    const { transport, feed } = await live();
    transport.newest.send(streamEvent('metrics', { batch: 50 }));
    await settle();
    await end(transport);
    expect(feed.view.connection).toEqual({ kind: 'ended' });
    expect(feed.view.experiment).toEqual(ENDED);
    expect(feed.view.logs).toEqual([logLine('one'), logLine('last', 9)]);
    transport.forget();
    feed.pause();
    feed.resume();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
  });

  it('still lets one read the logs of all trials, and says why not', async () => {
    const { transport, feed } = await live();
    await end(transport);
    transport.forget();
    transport.answers.set(
      'master/trials/4/logs',
      Array.from({ length: 50 }, (_, id) => logLine(`line ${id}`, id + 1))
    );
    await feed.chooseLog(4);
    expect(feed.view.log).toEqual({
      trialId: 4,
      chosen: true,
      atBegin: false
    });
    await feed.earlierLogs();
    expect(transport.requests).toEqual([
      'GET master/trials/4/logs?last=50',
      'GET master/trials/4/system?points=250',
      'GET master/trials/4/logs?last=500&before=1'
    ]);
    transport.answers.set(LOGS, AWAY);
    await expect(feed.chooseLog(3)).rejects.toBe(AWAY);
    expect(feed.view.log?.trialId).toBe(4);
    expect(feed.view.connection).toEqual({ kind: 'ended' });
    expect(feed.view.connection).toEqual({ kind: 'ended' });
  });

  it('is not undone by an older answer that comes late', async () => {
    const { transport, feed } = await live();
    const late = held<unknown>();
    transport.answers.set(EXPERIMENT, late.promise);
    await vi.advanceTimersByTimeAsync(3000);
    await end(transport);
    late.release(detail({ state: 'ACTIVE' }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(feed.view.experiment?.state).toBe('COMPLETED');
    expect(feed.view.connection.kind).toBe('ended');
  });

  it('is not taken back by such an answer while the last load goes on', async () => {
    const { transport, feed } = await live();
    const [late, last] = [held<unknown>(), held<unknown>()];
    transport.answers.set(EXPERIMENT, late.promise);
    await vi.advanceTimersByTimeAsync(3000);
    transport.answers.set(EXPERIMENT, last.promise);
    transport.newest.send(
      streamEvent('experiment', { state: 'COMPLETED' }, null)
    );
    await settle();
    late.release(detail({ state: 'ACTIVE' }));
    await settle();
    expect(feed.view.experiment?.state).toBe('COMPLETED');
    last.release(ENDED);
    await settle();
    expect(feed.view.connection).toEqual({ kind: 'ended' });
  });

  it('that was long ago is loaded once', async () => {
    const { transport, feed } = follow();
    transport.answers.set(EXPERIMENT, ENDED);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(feed.view.connection.kind).toBe('ended');
    expect(transport.requests).toHaveLength(9);
  });
});

it('a feed that is disposed leaves no stream, no timer and no listener', async () => {
  const { transport, feed, views } = await live();
  transport.newest.send(streamEvent('metrics', { batch: 50 }));
  await settle();
  feed.dispose();
  const told = views.length;
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(transport.newest.over).toBe(true);
  expect(transport.requests).toEqual([]);
  expect(views).toHaveLength(told);
});

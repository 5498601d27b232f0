import { describe, expect, it, vi } from 'vitest';

import { RequestError } from '../../src/shared/transport';
import { detail } from './examples';
import { CURVES, EXPERIMENT, follow, live, settle } from './followedFeed';
import { AWAY } from './scriptedTransport';

const UNKNOWN = new RequestError(
  'There is no experiment 7.',
  404,
  'refused',
  ''
);

function followUnknown() {
  const found = follow();
  for (const path of [EXPERIMENT, CURVES]) {
    found.transport.answers.set(path, UNKNOWN);
  }
  return found;
}

describe('an experiment that the master does not know', () => {
  it('is asked for once', async () => {
    const { transport, feed } = followUnknown();
    await settle();
    expect(feed.view.connection).toEqual({ kind: 'missing' });
    expect(transport.newest.over).toBe(true);
    transport.forget();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(transport.requests).toEqual([]);
    expect(feed.view.connection).toEqual({ kind: 'missing' });
  });

  it('is not asked for whenever something else of the page gets through', async () => {
    const { transport } = followUnknown();
    const onRetry = vi.fn(() => () => undefined);
    Object.assign(transport, { onRetry });
    await settle();
    expect(onRetry).not.toHaveBeenCalled();
  });

  it('is asked for again on demand, and followed if there is one then', async () => {
    const { transport, feed } = followUnknown();
    await settle();
    transport.forget();
    feed.retry();
    await settle();
    expect(transport.requests).toContain(`GET ${EXPERIMENT}`);
    expect(feed.view.connection).toEqual({ kind: 'missing' });
    transport.answers.set(EXPERIMENT, detail());
    transport.answers.set(CURVES, []);
    feed.retry();
    await settle();
    expect(feed.view.connection).toEqual({ kind: 'live' });
  });

  it('is asked for again when it is shown again, and leaves nothing behind', async () => {
    const { transport, feed } = followUnknown();
    await settle();
    feed.pause();
    expect(feed.view.connection).toEqual({ kind: 'resting' });
    transport.forget();
    feed.resume();
    await settle();
    expect(transport.requests).toContain(`GET ${EXPERIMENT}`);
    expect(feed.view.connection).toEqual({ kind: 'missing' });
  });

  it('is told from a server extension that is not there', async () => {
    const { transport, feed } = follow();
    transport.answers.set(EXPERIMENT, new RequestError('Ours.', 404, 'absent'));
    await settle();
    expect(feed.view.connection).toMatchObject({
      kind: 'lost',
      state: 'absent',
      never: true
    });
  });
});

it('a connection is lost only if there was one', async () => {
  const first = follow();
  first.transport.answers.set(EXPERIMENT, AWAY);
  await settle();
  expect(first.feed.view.connection).toMatchObject({
    kind: 'lost',
    never: true
  });
  const { transport, feed } = await live();
  transport.newest.break();
  await settle();
  expect(feed.view.connection).toMatchObject({ kind: 'lost' });
  expect(feed.view.connection).not.toHaveProperty('never');
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  Follower,
  type FollowerHandlers,
  pauseAfter
} from '../../src/shared/follower';
import { RequestError } from '../../src/shared/transport';
import { streamEvent } from './examples';
import { AWAY, held, ScriptedTransport } from './scriptedTransport';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** A follower that notes what it calls; `ended` says when nothing more will come. */
function follow(change: Partial<FollowerHandlers> = {}) {
  const transport = new ScriptedTransport();
  const log: string[] = [];
  const state = { ended: false };
  const handlers: FollowerHandlers = {
    load: () => Promise.resolve(void log.push('load')),
    live: () => log.push('live'),
    event: event => log.push(`event ${event.event}`),
    finished: () => state.ended,
    ended: () => log.push('ended'),
    lost: error => log.push(`lost: ${error.message}`),
    ...change
  };
  const follower = new Follower(transport, { experiment_id: 7 }, handlers);
  return { follower, transport, log, state };
}

const settle = () => vi.advanceTimersByTimeAsync(0);

describe('the pause before a new try', () => {
  it('begins with half a second, doubles, and ends at ten', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 100, 5000].map(pauseAfter)).toEqual([
      500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000
    ]);
  });

  it('is what is waited between tries, and begins anew once it was live for a while', async () => {
    const { follower, transport } = follow();
    transport.refusal = AWAY;
    follower.resume();
    await settle();
    for (const [tries, pause] of [500, 1000, 2000, 4000].entries()) {
      await vi.advanceTimersByTimeAsync(pause - 1);
      expect(transport.requests).toHaveLength(tries + 1);
      await vi.advanceTimersByTimeAsync(1);
      expect(transport.requests).toHaveLength(tries + 2);
    }
    transport.refusal = null;
    await vi.advanceTimersByTimeAsync(8000);
    expect(transport.streams).toHaveLength(1);
    transport.newest.break();
    await vi.advanceTimersByTimeAsync(9999);
    expect(transport.streams).toHaveLength(1); // cut at once, by a proxy say: no reason to hurry
    await vi.advanceTimersByTimeAsync(1);
    expect(transport.streams).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(5000);
    transport.newest.break();
    await vi.advanceTimersByTimeAsync(500);
    expect(transport.streams).toHaveLength(3);
    follower.dispose();
    await settle();
  });

  it('ends at once when something else of the page got through', async () => {
    const { follower, transport, log } = follow();
    const waiting = new Set<() => void>();
    Object.assign(transport, {
      onRetry: (listener: () => void) => {
        waiting.add(listener);
        return () => waiting.delete(listener);
      }
    });
    transport.refusal = AWAY;
    follower.resume();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(waiting.size).toBe(1);
    transport.refusal = null;
    waiting.forEach(listener => listener());
    await settle();
    expect(log.at(-1)).toBe('live');
    expect(waiting.size).toBe(0);
    follower.dispose();
    await settle();
  });

  it('is short while the master starts', async () => {
    const { follower, transport } = follow();
    transport.refusal = AWAY;
    follower.resume();
    await vi.advanceTimersByTimeAsync(20_000);
    transport.refusal = new RequestError('It starts.', 503, 'starting');
    follower.retry();
    await settle();
    transport.requests.length = 0;
    await vi.advanceTimersByTimeAsync(2100);
    expect(transport.requests).toHaveLength(3);
    follower.dispose();
    await settle();
  });

  it('ends at once on demand', async () => {
    const { follower, transport, log } = follow();
    transport.refusal = AWAY;
    follower.resume();
    await settle();
    transport.refusal = null;
    follower.retry();
    await settle();
    expect(log).toEqual(['lost: The master does not answer.', 'load', 'live']);
    follower.retry(); // nothing waits: nothing happens
    await settle();
    expect(transport.requests).toHaveLength(2);
    follower.dispose();
    await settle();
  });
});

describe('following', () => {
  it('asks for what happens from now on, and only then loads: nothing falls between', async () => {
    const { follower, transport, log } = follow();
    follower.resume();
    follower.resume(); // it runs already
    await settle();
    expect(transport.requests).toEqual([
      'STREAM master/events?experiment_id=7&tail=true'
    ]);
    expect(log).toEqual(['load', 'live']);
    transport.newest.send(streamEvent('trial', {}));
    await settle();
    expect(log).toEqual(['load', 'live', 'event trial']);
    follower.dispose();
    await settle();
  });

  it('tells events that come while it loads once, after what was loaded', async () => {
    const gate = held<void>();
    const { follower, transport, log } = follow({
      load: async () => {
        await gate.promise;
        log.push('load');
      }
    });
    follower.resume();
    await settle();
    transport.newest.send(streamEvent('one', {}), streamEvent('two', {}));
    await settle();
    expect(log).toEqual([]);
    gate.release();
    await settle();
    transport.newest.send(streamEvent('three', {}));
    await settle();
    expect(log).toEqual([
      'load',
      'event one',
      'event two',
      'live',
      'event three'
    ]);
    follower.dispose();
    await settle();
  });

  it('takes a failure to load, or to prepare, for a loss, and closes the stream', async () => {
    const failing = vi.fn(() => Promise.reject(AWAY));
    const { follower, transport, log } = follow({ load: failing });
    follower.resume();
    await settle();
    expect(log).toEqual(['lost: The master does not answer.']);
    expect(transport.newest.over).toBe(true);
    follower.dispose();
    const prepared = follow({ prepare: failing });
    prepared.follower.resume();
    await settle();
    expect(prepared.log).toEqual(['lost: The master does not answer.']);
    expect(prepared.transport.requests).toEqual([]);
    prepared.follower.dispose();
    await settle();
  });

  it('takes the end of the stream for a loss while there is more to come', async () => {
    const { follower, transport, log } = follow();
    follower.resume();
    await settle();
    transport.newest.end();
    await settle();
    expect(log.at(-1)).toBe('lost: The master ended the connection');
    follower.dispose();
    await settle();
  });

  it('says a mistake of its own too, instead of ending silently', async () => {
    const { follower, transport, log } = follow({
      event: () => {
        throw new TypeError('x is undefined');
      }
    });
    follower.resume();
    await settle();
    transport.newest.send(streamEvent('trial', {}));
    await settle();
    expect(log.at(-1)).toBe('lost: x is undefined');
    follower.dispose();
    await settle();
  });

  it('counts as lost what was asked for besides the stream and failed', async () => {
    const { follower, transport, log } = follow();
    follower.resume();
    await settle();
    follower.fail(new RequestError('Curves failed.', 500, 'refused'));
    await settle();
    expect(log.at(-1)).toBe('lost: Curves failed.');
    expect(transport.newest.over).toBe(true);
    await vi.advanceTimersByTimeAsync(500);
    expect(log.at(-1)).toBe('live');
    follower.dispose();
    await settle();
  });
});

describe('resting', () => {
  it('closes the stream and asks for nothing, however long', async () => {
    const { follower, transport } = follow();
    follower.resume();
    await settle();
    follower.pause();
    await settle();
    expect([transport.newest.over, follower.running]).toEqual([true, false]);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(transport.requests).toHaveLength(1);
  });

  it('that begins before the first request prevents it', async () => {
    const { follower, transport, log } = follow();
    follower.resume();
    follower.pause();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([transport.requests, log]).toEqual([[], []]);
  });

  it('that begins while it waits ends the waiting', async () => {
    const { follower, transport } = follow();
    transport.refusal = AWAY;
    follower.resume();
    await settle();
    follower.pause();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toHaveLength(1);
  });

  it('that begins while it loads is not followed by being live', async () => {
    const gate = held<void>();
    const { follower, log } = follow({ load: () => gate.promise });
    follower.resume();
    await settle();
    follower.pause();
    gate.release();
    await settle();
    expect(log).toEqual([]);
  });

  it('loads everything again when it ends, also when it was short', async () => {
    const { follower, transport, log } = follow();
    follower.resume();
    await settle();
    follower.pause();
    follower.resume();
    await settle();
    expect(log).toEqual(['load', 'live', 'load', 'live']);
    expect(transport.streams.map(stream => stream.over)).toEqual([true, false]);
    follower.dispose();
    await settle();
  });
});

describe('the end', () => {
  it('is told after all was loaded once more; then nothing is asked for', async () => {
    const { follower, transport, log, state } = follow();
    follower.resume();
    await settle();
    state.ended = true;
    transport.newest.send(streamEvent('experiment', {}));
    await settle();
    expect(log).toEqual(['load', 'live', 'event experiment', 'load', 'ended']);
    expect([follower.finished, follower.running]).toEqual([true, false]);
    expect(transport.newest.over).toBe(true);
    follower.resume();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toHaveLength(1);
  });

  it('that was before it began is loaded once', async () => {
    const { follower, transport, log, state } = follow();
    state.ended = true;
    follower.resume();
    await settle();
    expect(log).toEqual(['load', 'live', 'ended']);
    expect(transport.newest.over).toBe(true);
  });

  it('is not told before its last load has succeeded', async () => {
    let failing = false;
    const { follower, transport, log, state } = follow({
      load: () => (failing ? Promise.reject(AWAY) : Promise.resolve())
    });
    follower.resume();
    await settle();
    [state.ended, failing] = [true, true];
    transport.newest.send(streamEvent('experiment', {}));
    await settle();
    expect(log.at(-1)).toBe('lost: The master does not answer.');
    failing = false;
    await vi.advanceTimersByTimeAsync(500);
    expect(log.slice(-2)).toEqual(['live', 'ended']);
  });

  it('by dispose is for good', async () => {
    const { follower, transport } = follow();
    follower.resume();
    await settle();
    follower.dispose();
    follower.resume();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toHaveLength(1);
    expect(transport.newest.over).toBe(true);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';

import { withSharedEvents } from '../../src/shared/sharedEvents';
import type { StreamEvent, Transport } from '../../src/shared/transport';
import { AWAY, ScriptedTransport } from './scriptedTransport';

const settle = () => new Promise(resolve => setTimeout(resolve, 0));
let pages = 0;

function eventOf(id: number, experiment: number): StreamEvent {
  return {
    id,
    event: 'metrics',
    data: { experiment_id: experiment, data: {} }
  };
}

/** Someone who follows events; keeps what came. */
function follow(transport: Transport, experimentId?: number) {
  const gone = new AbortController();
  const found = {
    ids: [] as number[],
    opened: 0,
    end: '',
    leave: () => gone.abort('left')
  };
  const read = async () => {
    const query = {
      tail: true,
      ...(experimentId === undefined ? {} : { experiment_id: experimentId })
    };
    const onOpen = () => (found.opened += 1);
    try {
      const events = transport.stream({
        query,
        signal: gone.signal,
        onOpen
      });
      for await (const event of events) {
        found.ids.push(event.id);
      }
      found.end = 'closed';
    } catch (error) {
      found.end = error instanceof Error ? error.message : String(error);
    }
  };
  void read();
  return found;
}

describe('the events of a page', () => {
  let scripted: ScriptedTransport;
  let shared: Transport;

  beforeEach(() => {
    scripted = new ScriptedTransport();
    shared = withSharedEvents(scripted, `server-${(pages += 1)}`);
  });

  it('come by one stream, to each its own experiment', async () => {
    const [list, third, fourth] = [
      follow(shared),
      follow(shared, 3),
      follow(shared, 4)
    ];
    await settle();
    expect(scripted.requests).toEqual(['STREAM master/events?tail=true']);
    scripted.newest.send(eventOf(1, 3), eventOf(2, 4), eventOf(3, 3));
    await settle();
    expect([list.ids, third.ids, fourth.ids]).toEqual([[1, 2, 3], [1, 3], [2]]);
    expect([list.opened, third.opened, fourth.opened]).toEqual([1, 1, 1]);
    [list, third, fourth].forEach(each => each.leave());
    await settle();
    expect(scripted.newest.over).toBe(true);
  });

  it('are shared by all bundles of the page, and not with another server', async () => {
    const again = withSharedEvents(new ScriptedTransport(), `server-${pages}`);
    const other = new ScriptedTransport();
    const all = [
      follow(shared, 1),
      follow(again, 2),
      follow(withSharedEvents(other, `server-${(pages += 1)}`), 1)
    ];
    await settle();
    expect(scripted.streams).toHaveLength(1);
    expect(other.streams).toHaveLength(1);
    scripted.newest.send(eventOf(7, 2));
    await settle();
    expect(all.map(each => each.ids)).toEqual([[], [7], []]);
    all.forEach(each => each.leave());
    await settle();
  });

  it('are told from the moment on at which one comes', async () => {
    const first = follow(shared, 1);
    await settle();
    scripted.newest.send(eventOf(1, 1));
    await settle();
    const second = follow(shared, 1);
    await settle();
    expect(second.opened).toBe(1);
    scripted.newest.send(eventOf(2, 1));
    await settle();
    expect([first.ids, second.ids]).toEqual([[1, 2], [2]]);
    first.leave();
    await settle();
    expect(first.end).toBe('left');
    scripted.newest.send(eventOf(3, 1));
    await settle();
    expect([first.ids, second.ids]).toEqual([
      [1, 2],
      [2, 3]
    ]);
    second.leave();
    await settle();
    expect(scripted.newest.over).toBe(true);
  });

  it('end for all when the stream breaks, and the next one opens another', async () => {
    const [first, second] = [follow(shared, 1), follow(shared, 2)];
    await settle();
    scripted.newest.send(eventOf(1, 2));
    scripted.newest.break();
    await settle();
    expect([first.end, second.end]).toEqual([AWAY.message, AWAY.message]);
    expect(second.ids).toEqual([1]);
    const third = follow(shared, 1);
    await settle();
    expect(scripted.streams).toHaveLength(2);
    scripted.newest.end();
    await settle();
    expect(third.end).toBe('closed');
  });

  it('give hope to all that wait as soon as one gets through, or a master is started', async () => {
    const told: string[] = [];
    const other = withSharedEvents(new ScriptedTransport(), `server-${pages}`);
    const forget = other.onRetry?.(() => told.push('other bundle'));
    scripted.refusal = AWAY;
    follow(shared, 1);
    await settle();
    expect(told).toEqual([]);
    scripted.refusal = null;
    const through = follow(shared, 1);
    await settle();
    expect(told).toEqual(['other bundle']);
    scripted.answers.set('start', {});
    scripted.answers.set('notebook-runs', {});
    await shared.post('notebook-runs');
    expect(told).toHaveLength(1);
    await shared.post('start');
    expect(told).toHaveLength(2);
    forget?.();
    await shared.post('start');
    expect(told).toHaveLength(2);
    through.leave();
  });

  it('are refused to all where the stream is', async () => {
    scripted.refusal = AWAY;
    const [first, second] = [follow(shared, 1), follow(shared, 2)];
    await settle();
    expect([first.end, second.end]).toEqual([AWAY.message, AWAY.message]);
    expect([first.opened, second.opened]).toEqual([0, 0]);
  });
});

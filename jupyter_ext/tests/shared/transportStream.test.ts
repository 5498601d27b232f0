import { once } from 'node:events';

import { describe, expect, it, vi } from 'vitest';

import { FetchTransport } from '../../src/shared/transport';
import { collect, connected, PREFIX, refused, running } from './connected';
import { answerJson } from './httpServer';

/** A transport whose stream has these pieces, and goes on or ends after them. */
function streaming(pieces: readonly Uint8Array[], ends = true) {
  const state = { cancelled: false, send: (_: string) => undefined as void };
  const transport = new FetchTransport('/', (_, init) => {
    const body = new ReadableStream<Uint8Array>({
      start: controller => {
        pieces.forEach(piece => controller.enqueue(piece));
        state.send = text => controller.enqueue(new TextEncoder().encode(text));
        init.signal?.addEventListener('abort', () =>
          controller.error(init.signal?.reason)
        );
        if (ends) {
          controller.close();
        }
      },
      cancel: () => {
        state.cancelled = true;
      }
    });
    return Promise.resolve(new Response(body));
  });
  return { transport, state };
}

describe('an event stream', () => {
  const TEXT =
    'id: 1\nevent: trial\ndata: "größe 🙂 模型"\n\n: ping\n\nid: 2\ndata: [2]\n\n';
  const BYTES = new TextEncoder().encode(TEXT);

  it('is the same wherever its bytes are cut, in the middle of a letter too', async () => {
    for (let cut = 0; cut <= BYTES.length; cut++) {
      const { transport } = streaming([BYTES.slice(0, cut), BYTES.slice(cut)]);
      const signal = new AbortController().signal;
      expect(
        await collect(transport.stream({ signal })),
        `cut at byte ${cut}`
      ).toEqual(['größe 🙂 模型', [2]]);
    }
  });

  it('comes piece by piece over a real connection, and says when it is open', async () => {
    let continueStream: () => void = () => undefined;
    const transport = await connected((_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(BYTES.slice(0, 33));
      continueStream = () => response.end(BYTES.slice(33));
    });
    const opened = vi.fn(() => continueStream());
    const signal = new AbortController().signal;
    const options = { signal, query: { tail: true }, onOpen: opened };
    expect(await collect(transport.stream(options))).toHaveLength(2);
    expect(opened).toHaveBeenCalledTimes(1);
    expect(running().requests[0]?.url).toBe(
      `${PREFIX}/master/events?tail=true`
    );
    expect(running().requests[0]?.headers.accept).toBe('text/event-stream');
  });

  it('that is refused is never open', async () => {
    const body = { state: 'none', message: 'No master.', remedy: 'Start one.' };
    const transport = await connected((_, response) =>
      answerJson(response, body, 503)
    );
    const onOpen = vi.fn();
    const signal = new AbortController().signal;
    const error = await refused(collect(transport.stream({ signal, onOpen })));
    expect([error.state, error.message]).toEqual(['none', 'No master.']);
    expect(onOpen).not.toHaveBeenCalled();
  });

  it('that breaks is a loss in words, after all that came', async () => {
    const transport = await connected((_, response) => {
      response.writeHead(200);
      response.write('data: 1\n\ndata: 2');
    });
    const found: unknown[] = [];
    const error = await refused(
      (async () => {
        const signal = new AbortController().signal;
        for await (const event of transport.stream({ signal })) {
          found.push(event.data);
          running().breakOff();
        }
      })()
    );
    expect(found).toEqual([1]);
    expect(error.state).toBe('unreachable');
    expect(error.message).toBe('The connection to the master was lost.');
  });

  it('that is left is closed at the server', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const transport = await connected((_, response) => {
      closed = once(response, 'close');
      response.writeHead(200);
      response.write('data: 1\n\n');
    });
    const leaving = new AbortController();
    for await (const event of transport.stream({
      signal: leaving.signal
    })) {
      expect(event.data).toBe(1);
      break;
    }
    await closed;
    expect(leaving.signal.aborted).toBe(false);
  });

  it('that is called off while it is silent ends at once, without words', async () => {
    const transport = await connected((_, response) => {
      response.writeHead(200);
      response.flushHeaders();
    });
    const leaving = new AbortController();
    const read = collect(
      transport.stream({
        signal: leaving.signal,
        onOpen: () => leaving.abort()
      })
    );
    await expect(read).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('is lost after 45 s of silence; a comment is no silence', async () => {
    vi.useFakeTimers();
    const { transport, state } = streaming([], false);
    const signal = new AbortController().signal;
    const ended = vi.fn();
    const read = refused(collect(transport.stream({ signal }))).finally(ended);
    await vi.advanceTimersByTimeAsync(40_000);
    state.send(': ping\n\n');
    await vi.advanceTimersByTimeAsync(44_000);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await read).state).toBe('unreachable');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves no timer, and nothing that is still read', async () => {
    vi.useFakeTimers();
    const { transport, state } = streaming([BYTES], false);
    const signal = new AbortController().signal;
    for await (const event of transport.stream({ signal })) {
      expect(event.id).toBe(1);
      break;
    }
    expect(state.cancelled).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});

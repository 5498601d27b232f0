import { once } from 'node:events';

import { afterEach, describe, expect, it, vi } from 'vitest';

import type { StreamEvent } from '../../src/shared/sse';
import {
  asRequestError,
  FetchTransport,
  RequestError,
  xsrfHeader
} from '../../src/shared/transport';
import {
  answerJson,
  bodyOf,
  type Handler,
  type RunningServer,
  serve
} from './httpServer';

const PREFIX = '/user/ada/det-native/api';

let server: RunningServer | null = null;

afterEach(async () => {
  vi.useRealTimers();
  await server?.stop();
  server = null;
});

async function connected(
  handler: Handler,
  seconds?: number
): Promise<FetchTransport> {
  server = await serve(handler);
  const headers = () => ({ Authorization: 'token of-jupyter' });
  return new FetchTransport(
    `${server.url}user/ada/`,
    undefined,
    headers,
    seconds
  );
}

async function refused(work: Promise<unknown>): Promise<RequestError> {
  const error: unknown = await work.then(
    () => null,
    (found: unknown) => found
  );
  expect(error).toBeInstanceOf(RequestError);
  return error as RequestError;
}

async function collect(stream: AsyncIterable<StreamEvent>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const event of stream) {
    found.push(event.data);
  }
  return found;
}

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

describe('an address', () => {
  it.each([
    ['/', '/det-native/api/status'],
    ['', '/det-native/api/status'],
    ['/user/ada', '/user/ada/det-native/api/status'],
    ['http://host:1/lab//', 'http://host:1/lab/det-native/api/status']
  ])('begins with the base %j', (base, url) => {
    expect(new FetchTransport(base).url('status')).toBe(url);
  });

  it('has what is asked for, encoded, and nothing of what is not', () => {
    const query = {
      text: 'a&b=c ü',
      none: null,
      nothing: undefined,
      zero: 0,
      tail: true
    };
    expect(new FetchTransport('/').url('x', query)).toBe(
      '/det-native/api/x?text=a%26b%3Dc%20%C3%BC&zero=0&tail=true'
    );
  });
});

describe('a request', () => {
  it('reads JSON, with the headers that the server wants', async () => {
    const transport = await connected((_, response) =>
      answerJson(response, { größe: [1] })
    );
    expect(await transport.get('master/experiments', { limit: 5 })).toEqual({
      größe: [1]
    });
    const [request] = server?.requests ?? [];
    expect(request?.method).toBe('GET');
    expect(request?.url).toBe(`${PREFIX}/master/experiments?limit=5`);
    expect(request?.headers.authorization).toBe('token of-jupyter');
  });

  it('sends JSON', async () => {
    const transport = await connected((request, response) => {
      void bodyOf(request).then(body => answerJson(response, { got: body }));
    });
    expect(await transport.post('document/submit', { name: '<b>' })).toEqual({
      got: { name: '<b>' }
    });
    expect(server?.requests[0]?.headers['content-type']).toBe(
      'application/json'
    );
    expect(await transport.post('start')).toEqual({ got: {} });
  });

  it('has nothing to read where nothing is said', async () => {
    const transport = await connected((_, response) =>
      response.writeHead(204).end()
    );
    expect(await transport.post('master/experiments/7/kill')).toBeUndefined();
  });

  it('that is refused says it in the words of the server', async () => {
    const transport = await connected((_, response) =>
      answerJson(
        response,
        {
          error: 'Cannot be sent.',
          remedy: 'Mend it.',
          problems: [{ where: 'cell 3', what: '<b>', remedy: 7 }, null]
        },
        400
      )
    );
    const error = await refused(transport.post('document/submit'));
    expect(error).toMatchObject({
      message: 'Cannot be sent.',
      remedy: 'Mend it.',
      status: 400
    });
    expect(error.state).toBe('refused');
    expect(error.problems).toEqual([
      { where: 'cell 3', what: '<b>', remedy: '' },
      { where: '', what: '', remedy: '' }
    ]);
  });

  it.each([
    [
      503,
      { state: 'starting', message: 'Starting.', remedy: 'Wait.' },
      'starting',
      'Starting.',
      'Wait.'
    ],
    [
      403,
      { message: 'Forbidden' },
      'unauthorised',
      'Forbidden',
      'Reload the page to sign in again.'
    ],
    [
      401,
      {},
      'refused',
      'The Jupyter server answered 401.',
      'Reload the page to sign in again.'
    ],
    [
      500,
      [],
      'refused',
      'The Jupyter server answered 500.',
      'Try again; the log of the Jupyter server says more.'
    ],
    [404, { error: 'No such trial.' }, 'refused', 'No such trial.', ''],
    [409, 'text', 'refused', 'The Jupyter server answered 409.', '']
  ])(
    'answered by %i %j has a state and words',
    async (code, body, state, message, remedy) => {
      const transport = await connected((_, response) =>
        answerJson(response, body, code)
      );
      const error = await refused(transport.get('x'));
      expect([error.status, error.state, error.message, error.remedy]).toEqual([
        code,
        state,
        message,
        remedy
      ]);
    }
  );

  it('to a server without our extension says how to enable it', async () => {
    const transport = await connected((_, response) => {
      response
        .writeHead(404, { 'Content-Type': 'text/html' })
        .end('<html>404</html>');
    });
    const error = await refused(transport.get('status'));
    expect(error.state).toBe('absent');
    expect(error.remedy).toContain(
      'jupyter server extension enable det_jupyter'
    );
  });

  it.each(['get', 'stream'] as const)(
    'that nobody answers says so (%s)',
    async kind => {
      const transport = await connected(() => undefined);
      await server?.stop();
      const signal = new AbortController().signal;
      const asked =
        kind === 'get'
          ? transport.get('status')
          : collect(transport.stream('events', { signal }));
      const error = await refused(asked);
      expect([error.status, error.state]).toEqual([0, 'unreachable']);
      expect(error.message).toBe('The Jupyter server does not answer.');
      expect(error.remedy).not.toBe('');
    }
  );

  it('that takes too long is given up', async () => {
    const transport = await connected(() => undefined, 0.02);
    expect((await refused(transport.get('status'))).state).toBe('unreachable');
  });

  it('that is answered with something else than JSON is not taken for an answer', async () => {
    const transport = await connected((_, response) =>
      response.writeHead(200).end('<html>')
    );
    expect((await refused(transport.get('status'))).state).toBe('unreachable');
  });

  it('that was called off is no failure in words', async () => {
    const leaving = new AbortController();
    const transport = await connected(() => leaving.abort());
    const work = transport.get('status', {}, leaving.signal);
    await expect(work).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('an event stream', () => {
  const TEXT =
    'id: 1\nevent: trial\ndata: "größe 🙂 模型"\n\n: ping\n\nid: 2\ndata: [2]\n\n';
  const BYTES = new TextEncoder().encode(TEXT);

  it('is the same wherever its bytes are cut, in the middle of a letter too', async () => {
    for (let cut = 0; cut <= BYTES.length; cut++) {
      const { transport } = streaming([BYTES.slice(0, cut), BYTES.slice(cut)]);
      const signal = new AbortController().signal;
      expect(
        await collect(transport.stream('e', { signal })),
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
    expect(
      await collect(transport.stream('master/events', options))
    ).toHaveLength(2);
    expect(opened).toHaveBeenCalledTimes(1);
    expect(server?.requests[0]?.url).toBe(`${PREFIX}/master/events?tail=true`);
    expect(server?.requests[0]?.headers.accept).toBe('text/event-stream');
  });

  it('that is refused is never open', async () => {
    const body = { state: 'none', message: 'No master.', remedy: 'Start one.' };
    const transport = await connected((_, response) =>
      answerJson(response, body, 503)
    );
    const onOpen = vi.fn();
    const signal = new AbortController().signal;
    const error = await refused(
      collect(transport.stream('e', { signal, onOpen }))
    );
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
        for await (const event of transport.stream('e', { signal })) {
          found.push(event.data);
          server?.breakOff();
        }
      })()
    );
    expect(found).toEqual([1]);
    expect(error.state).toBe('unreachable');
    expect(error.message).toBe('The stream of news broke off.');
  });

  it('that is left is closed at the server', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const transport = await connected((_, response) => {
      closed = once(response, 'close');
      response.writeHead(200);
      response.write('data: 1\n\n');
    });
    const leaving = new AbortController();
    for await (const event of transport.stream('e', {
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
      transport.stream('e', {
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
    const read = refused(collect(transport.stream('e', { signal }))).finally(
      ended
    );
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
    for await (const event of transport.stream('e', { signal })) {
      expect(event.id).toBe(1);
      break;
    }
    expect(state.cancelled).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the XSRF header', () => {
  it.each([
    ['', {}],
    ['theme=dark', {}],
    ['a=1; _xsrf=2%7Cab; b=2', { 'X-XSRFToken': '2|ab' }],
    [
      '_xsrf=of-the-hub; _xsrf=of-the-server',
      { 'X-XSRFToken': 'of-the-server' }
    ]
  ])('of the cookies %j', (cookies, header) => {
    expect(xsrfHeader(cookies)).toEqual(header);
  });

  it('is absent where there is no page', () => {
    expect(xsrfHeader()).toEqual({});
  });
});

it('an error that has its words keeps them', () => {
  const known = new RequestError('Known.', 400, 'refused');
  expect(asRequestError(known)).toBe(known);
  expect(asRequestError(new TypeError('Failed to fetch'))).toMatchObject({
    state: 'unreachable'
  });
});

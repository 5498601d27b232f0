/** A way to a server whose answers a test decides, and whose requests it counts. */
import { type Address, createApi } from '../../src/shared/api';
import { extensionPath, type ExtensionRoute } from '../../src/shared/paths';
import type { StreamEvent } from '../../src/shared/sse';
import type { StreamOptions, Transport } from '../../src/shared/transport';
import { RequestError } from '../../src/shared/transport';

export const AWAY = new RequestError(
  'The master does not answer.',
  503,
  'unreachable',
  'Wait.'
);

/** A stream that was asked for; it is open until the test or its reader ends it. */
export class ScriptedStream {
  private readonly _events: StreamEvent[] = [];
  private _ending: Error | 'end' | null = null;
  private _wake: () => void = () => undefined;
  /** Whether its reader has gone, or it has ended. */
  over = false;

  constructor(
    readonly path: string,
    readonly options: StreamOptions
  ) {}

  send(...events: StreamEvent[]): void {
    this._events.push(...events);
    this._wake();
  }

  end(): void {
    this._ending = 'end';
    this._wake();
  }

  break(error: Error = AWAY): void {
    this._ending = error;
    this._wake();
  }

  async *read(): AsyncGenerator<StreamEvent> {
    const { signal } = this.options;
    const aborted = () => this._wake();
    signal.addEventListener('abort', aborted);
    try {
      for (;;) {
        signal.throwIfAborted();
        const event = this._events.shift();
        if (event) {
          yield event;
        } else if (this._ending === 'end') {
          return;
        } else if (this._ending) {
          throw this._ending;
        } else {
          await new Promise<void>(resolve => (this._wake = resolve));
        }
      }
    } finally {
      this.over = true;
      signal.removeEventListener('abort', aborted);
    }
  }
}

/** Answers by path, or by method and path, as the server extension has it: `master/trials/3/logs`; an `Error` refuses, a promise makes it wait, a function gets the query. Requests that are called off stay so. */
export class ScriptedTransport implements Transport {
  readonly answers = new Map<string, unknown>();
  /** Method and address of each request, streams included. */
  readonly requests: string[] = [];
  /** What was sent with each request that changes something. */
  readonly bodies: unknown[] = [];
  /** What stands in the heads of answers, by path. */
  readonly heads = new Map<string, Record<string, string>>();
  readonly streams: ScriptedStream[] = [];
  /** What refuses the next streams; null lets them open. */
  refusal: Error | null = null;

  constructor(answers: Readonly<Record<string, unknown>> = {}) {
    Object.entries(answers).forEach(([path, answer]) =>
      this.answers.set(path, answer)
    );
  }

  /** The newest stream. */
  get newest(): ScriptedStream {
    const found = this.streams.at(-1);
    if (!found) {
      throw new Error('no stream was asked for');
    }
    return found;
  }

  /** The newest stream of a path. */
  newestOf(path: string): ScriptedStream {
    const found = this.streams.findLast(stream => stream.path === path);
    if (!found) {
      throw new Error(`no stream ${path} was asked for`);
    }
    return found;
  }

  /** Forget what was asked for until now. */
  forget(): void {
    this.requests.length = 0;
  }

  readonly api = createApi(async (address, init) => {
    const [path = '', search = ''] = extensionPath(address).split('?');
    const { method = 'GET', body, signal } = init;
    if (method !== 'GET') {
      this.bodies.push(typeof body === 'string' ? JSON.parse(body) : undefined);
    }
    const answer = await this._answer(
      method,
      path,
      search,
      signal ?? undefined
    );
    return answerOf(answer, this.heads.get(path));
  });

  get<T>(route: ExtensionRoute, signal?: AbortSignal): Promise<T> {
    return this._answer<T>('GET', route, '', signal);
  }

  url(address: Address): string {
    return `/${extensionPath(address)}`;
  }

  post<T>(
    route: ExtensionRoute,
    body: unknown = {},
    signal?: AbortSignal
  ): Promise<T> {
    this.bodies.push(body);
    return this._answer<T>('POST', route, '', signal);
  }

  async *stream(options: StreamOptions): AsyncGenerator<StreamEvent> {
    options.signal.throwIfAborted();
    const path = 'master/events';
    const query = Object.entries(options.query ?? {}).map(
      ([name, value]) => `${name}=${String(value)}`
    );
    this.requests.push(addressed('STREAM', path, query.join('&')));
    if (this.refusal) {
      throw this.refusal;
    }
    const stream = new ScriptedStream(path, options);
    this.streams.push(stream);
    options.onOpen?.();
    yield* stream.read();
  }

  private async _answer<T>(
    method: string,
    path: string,
    query: string,
    signal?: AbortSignal
  ): Promise<T> {
    signal?.throwIfAborted();
    this.requests.push(addressed(method, path, query));
    const known =
      this.answers.get(`${method} ${path}`) ?? this.answers.get(path);
    const answer: unknown = await (typeof known === 'function'
      ? (known as Answer)(new URLSearchParams(query))
      : known);
    signal?.throwIfAborted();
    if (answer === undefined) {
      throw new RequestError(`There is no ${path}.`, 404, 'refused');
    }
    if (answer instanceof Error) {
      throw answer;
    }
    return (answer instanceof Blob ? answer : structuredClone(answer)) as T;
  }
}

type Answer = (query: URLSearchParams) => unknown;

/** A request as people read it: decoded, and a list by commas. */
function addressed(method: string, path: string, search: string): string {
  const values = new URLSearchParams(search);
  const query = [...new Set(values.keys())]
    .map(name => `${name}=${values.getAll(name).join(',')}`)
    .join('&');
  return query === '' ? `${method} ${path}` : `${method} ${path}?${query}`;
}

/** An answer of these values; a `Blob` of jsdom is none that a `Response` takes. */
function answerOf(answer: unknown, head?: Record<string, string>): Response {
  return {
    ok: true,
    status: 200,
    headers: new Headers(head),
    text: () => Promise.resolve(JSON.stringify(answer)),
    blob: () => Promise.resolve(answer)
  } as unknown as Response;
}

/** A promise that a test keeps open. */
export function held<T>(): {
  promise: Promise<T>;
  release: (value: T) => void;
} {
  let release: (value: T) => void = () => undefined;
  const promise = new Promise<T>(resolve => (release = resolve));
  return { promise, release };
}

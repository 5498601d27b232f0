/** A way to a server whose answers a test decides, and whose requests it counts. */
import type { StreamEvent } from '../../src/shared/sse';
import type {
  Page,
  Query,
  StreamOptions,
  Transport
} from '../../src/shared/transport';
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

/** Answers by path; an `Error` refuses, a promise makes it wait. Requests that are called off stay so. */
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

  get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return this._answer<T>('GET', path, query, signal);
  }

  blob(path: string, signal?: AbortSignal): Promise<Blob> {
    return this._answer<Blob>('BLOB', path, {}, signal);
  }

  url(path: string, query: Query = {}): string {
    return address('', `/${path}`, query).trim();
  }

  async getPage<T>(
    path: string,
    query: Query = {},
    signal?: AbortSignal
  ): Promise<Page<T>> {
    const body = await this._answer<T>('GET', path, query, signal);
    return { body, head: new Headers(this.heads.get(path)) };
  }

  send<T>(
    method: 'PATCH' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    query: Query = {}
  ): Promise<T> {
    this.bodies.push(body);
    return this._answer<T>(method, path, query);
  }

  post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
    this.bodies.push(body);
    return this._answer<T>('POST', path, {}, signal);
  }

  async *stream(
    path: string,
    options: StreamOptions
  ): AsyncGenerator<StreamEvent> {
    options.signal.throwIfAborted();
    this.requests.push(address('STREAM', path, options.query ?? {}));
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
    query: Query,
    signal?: AbortSignal
  ): Promise<T> {
    signal?.throwIfAborted();
    this.requests.push(address(method, path, query));
    const answer = await this.answers.get(path);
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

function address(method: string, path: string, query: Query): string {
  const parts = Object.entries(query).map(
    ([name, value]) => `${name}=${String(value)}`
  );
  return `${method} ${path}${parts.length > 0 ? `?${parts.join('&')}` : ''}`;
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

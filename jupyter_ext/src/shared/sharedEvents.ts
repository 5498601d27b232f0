/**
 * One event stream of the master for a whole page: a browser opens six connections to a server, for all its pages.
 *
 * Whoever asks for events takes part in the stream that is open, or opens it; the last one to leave closes it. The
 * widget and the extension are bundled apart, so they meet in the page's global object.
 */

import type { ExtensionRoute } from './paths';
import type { StreamEvent } from './sse';
import type { StreamOptions, Transport } from './transport';

const START = 'start';
const HUBS = Symbol.for('det-native.event-hubs.3');

/** What reads the events for one who asked. */
class Subscriber {
  private readonly _events: StreamEvent[] = [];
  private _wake: () => void = () => undefined;
  private _ended: { error: Error | null } | null = null;

  constructor(
    readonly options: StreamOptions,
    private readonly _experimentId: unknown
  ) {}

  open(): void {
    this.options.onOpen?.();
  }

  take(event: StreamEvent): void {
    const { experiment_id: id } = event.data as { experiment_id?: unknown };
    if (this._experimentId === undefined || id === this._experimentId) {
      this._events.push(event);
      this._wake();
    }
  }

  /** The stream is over; `error` is null where the server ended it. */
  end(error: Error | null): void {
    this._ended = { error };
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
        if (event !== undefined) {
          yield event;
        } else if (this._ended !== null) {
          if (this._ended.error !== null) {
            throw this._ended.error;
          }
          return;
        } else {
          await new Promise<void>(resolve => (this._wake = resolve));
        }
      }
    } finally {
      signal.removeEventListener('abort', aborted);
    }
  }
}

/** The stream of one server and those who take part in it. */
export class EventHub {
  private readonly _subscribers = new Set<Subscriber>();
  private readonly _retrying = new Set<() => void>();
  private _running: AbortController | null = null;
  private _open = false;

  /** Call `listener` when the stream opens, or a master was started; returns what ends it. */
  onRetry(listener: () => void): () => void {
    this._retrying.add(listener);
    return () => this._retrying.delete(listener);
  }

  /** Have all that wait for another try make it now. */
  retryAll(): void {
    [...this._retrying].forEach(listener => listener());
  }

  /** Take part from now on; `onOpen` is called when nothing is missed any more. */
  async *follow(
    transport: Transport,
    options: StreamOptions
  ): AsyncGenerator<StreamEvent> {
    options.signal.throwIfAborted();
    const subscriber = new Subscriber(options, options.query?.experiment_id);
    this._subscribers.add(subscriber);
    if (this._running === null) {
      void this._run(transport);
    } else if (this._open) {
      subscriber.open();
    }
    try {
      yield* subscriber.read();
    } finally {
      this._subscribers.delete(subscriber);
      if (this._subscribers.size === 0) {
        this._running?.abort();
        this._running = null;
        this._open = false;
      }
    }
  }

  private async _run(transport: Transport): Promise<void> {
    const running = new AbortController();
    this._running = running;
    const { signal } = running;
    const onOpen = () => {
      if (this._running === running) {
        this._open = true;
        this._subscribers.forEach(subscriber => subscriber.open());
        this.retryAll();
      }
    };
    let reason: Error | null = null;
    try {
      for await (const event of transport.stream({
        query: { tail: true },
        signal,
        onOpen
      })) {
        if (this._running === running) {
          this._subscribers.forEach(subscriber => subscriber.take(event));
        }
      }
    } catch (error) {
      reason = error instanceof Error ? error : new Error(String(error));
    }
    if (this._running === running) {
      this._running = null;
      this._open = false;
      const all = [...this._subscribers];
      this._subscribers.clear();
      all.forEach(subscriber => subscriber.end(reason));
    }
  }
}

/** A transport whose event streams are one, shared by all that are made with the same `server` in this page. */
export function withSharedEvents(
  transport: Transport,
  server: string
): Transport {
  const hubs = ((globalThis as Record<symbol, unknown>)[HUBS] ??=
    new Map()) as Map<string, EventHub>;
  const hub = hubs.get(server) ?? new EventHub();
  hubs.set(server, hub);
  return {
    api: transport.api,
    get: (route, signal) => transport.get(route, signal),
    url: address => transport.url(address),
    post: async <T>(
      route: ExtensionRoute,
      body?: unknown,
      signal?: AbortSignal
    ) => {
      const answer = await transport.post<T>(route, body, signal);
      if (route === START) {
        hub.retryAll();
      }
      return answer;
    },
    onRetry: listener => hub.onRetry(listener),
    stream: options => hub.follow(transport, options)
  };
}

/** Keeps one event stream alive: opens it, loads what it does not tell, backs off when it breaks, rests when hidden. */

import type { StreamEvent } from './sse';
import type { EventsQuery, Transport } from './transport';
import { RequestError } from './transport';

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
/** While the master starts it will be there soon. */
const STARTING_PAUSE = 700;
/** State of an error after which only the user tries again. */
export const FINAL = 'missing';
/** A stream that ends sooner counts as one more failure: something in between cuts it at once. */
const STEADY = 5_000;

export interface FollowerHandlers {
  /** Before each try; what it throws counts as a loss. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** Load everything. The stream is open already, so what happens meanwhile is told by events, applied after it. */
  load(signal: AbortSignal): Promise<void>;
  /** Everything is loaded and the stream is open. */
  live(): void;
  event(event: StreamEvent): void;
  /** Whether nothing more will come. */
  finished(): boolean;
  /** Nothing more will come, and all of it is loaded. */
  ended(): void;
  lost(error: RequestError): void;
}

/** Milliseconds before the next try after `failures` in a row (from 1): 0.5 s, doubled, 10 s at most. */
export function pauseAfter(failures: number): number {
  return Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE);
}

/** Runs from `resume` to `pause`, again and again; a stream that is taken up again begins with loading everything. */
export class Follower {
  private _running: AbortController | null = null;
  private _attempt: AbortController | null = null;
  private _wake: (() => void) | null = null;
  private _disposed = false;
  private _finished = false;

  constructor(
    private readonly _transport: Transport,
    private readonly _query: EventsQuery,
    private readonly _handlers: FollowerHandlers
  ) {}

  get running(): boolean {
    return this._running !== null;
  }

  /** Whether all is told; nothing is asked for any more. */
  get finished(): boolean {
    return this._finished;
  }

  resume(): void {
    if (this._disposed || this._running || this._finished) {
      return;
    }
    this._running = new AbortController();
    void this._run(this._running.signal);
  }

  pause(): void {
    this._running?.abort();
    this._running = null;
    this._wake?.();
  }

  /** Try now, if it waits. */
  retry(): void {
    this._wake?.();
  }

  /** Count the connection as lost: something that was asked for besides the stream failed. */
  fail(error: RequestError): void {
    this._attempt?.abort(error);
  }

  dispose(): void {
    this._disposed = true;
    this.pause();
  }

  private async _run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      let since = Infinity;
      try {
        await this._follow(signal, () => (since = Date.now()));
        if (!signal.aborted) {
          this._finished = true;
          this._running = null;
          this._handlers.ended();
        }
        return;
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        failures = Date.now() - since >= STEADY ? 1 : failures + 1;
        const loss = asLoss(error);
        this._handlers.lost(loss);
        if (loss.state === FINAL) {
          await this._sleep(null);
          continue;
        }
        const starting = loss.state === 'starting';
        await this._sleep(starting ? STARTING_PAUSE : pauseAfter(failures));
      }
    }
  }

  private async _follow(outer: AbortSignal, onLive: () => void): Promise<void> {
    const attempt = new AbortController();
    this._attempt = attempt;
    const signal = AbortSignal.any([outer, attempt.signal]);
    try {
      await this._handlers.prepare?.(signal);
      signal.throwIfAborted();
      await this._read(attempt, signal, onLive);
    } catch (error) {
      throw attempt.signal.aborted ? attempt.signal.reason : error;
    } finally {
      attempt.abort();
    }
  }

  private async _read(
    attempt: AbortController,
    signal: AbortSignal,
    onLive: () => void
  ): Promise<void> {
    const early: StreamEvent[] = [];
    let loading = Promise.resolve();
    let loaded = false;
    const load = async () => {
      await this._handlers.load(signal);
      signal.throwIfAborted(); // paused or lost meanwhile: it is not live
      loaded = true;
      early.splice(0).forEach(event => this._handlers.event(event));
      onLive();
      this._handlers.live();
      if (this._handlers.finished()) {
        attempt.abort(FINISHED);
      }
    };
    const onOpen = () => {
      loading = load().catch((error: unknown) => attempt.abort(error));
    };
    try {
      const query = { ...this._query, tail: true };
      for await (const event of this._transport.stream({
        query,
        signal,
        onOpen
      })) {
        if (!loaded) {
          early.push(event);
          continue;
        }
        this._handlers.event(event);
        if (this._handlers.finished()) {
          break;
        }
      }
    } catch (error) {
      if (attempt.signal.reason !== FINISHED) {
        throw error;
      }
      return;
    }
    await loading;
    if (!this._handlers.finished()) {
      throw attempt.signal.aborted ? attempt.signal.reason : closed();
    }
    if (attempt.signal.reason !== FINISHED) {
      await this._handlers.load(signal);
    }
  }

  /** Wait that long, or until a try is worth it; null: until one is wanted. */
  private _sleep(milliseconds: number | null): Promise<void> {
    return new Promise(resolve => {
      const done = () => {
        clearTimeout(timer);
        forget();
        this._wake = null;
        resolve();
      };
      const waits = milliseconds !== null;
      const timer = waits ? setTimeout(done, milliseconds) : undefined;
      const ended = waits ? this._transport.onRetry?.(done) : undefined;
      const forget = ended ?? (() => undefined);
      this._wake = done;
    });
  }
}

/** The reason for leaving a stream whose experiment had ended before it was opened. */
const FINISHED = Symbol('finished');

/** Tell an experiment that the master does not know from a master that cannot be asked. */
export function asFinal(error: unknown): never {
  const missing =
    error instanceof RequestError &&
    error.status === 404 &&
    error.state === 'refused';
  throw missing ? new RequestError(error.message, 404, FINAL) : error;
}

function closed(): RequestError {
  return new RequestError('The master ended the connection', 0, 'unreachable');
}

/** What broke, in words; a mistake of ours is said too instead of a silent end. */
function asLoss(error: unknown): RequestError {
  if (error instanceof RequestError) {
    return error;
  }
  return new RequestError(
    error instanceof Error ? error.message : String(error),
    0,
    'unreachable'
  );
}

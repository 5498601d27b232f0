/** One stream of the master's events for the whole workspace: who shows an experiment is told that it has changed. */

import { Follower } from '../../shared/follower';
import type { Connection, MasterStatus } from '../../shared/model';
import type { StreamEvent } from '../../shared/sse';
import { RequestError, type Transport } from '../../shared/transport';

/** At most once in so long, so that a thousand events ask for a list once. */
const PAUSE_MILLISECONDS = 1500;

export type ChangeListener = (changed: ReadonlySet<number>) => void;

/** Follows the master's events from `resume` to `pause`. */
export class LiveExperiments {
  private readonly _follower: Follower;
  private readonly _listeners = new Set<ChangeListener>();
  private readonly _connectionListeners = new Set<() => void>();
  private readonly _changed = new Set<number>();
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private _everLive = false;
  private _since: number | null = null;
  /** How the page is connected. */
  connection: Connection = { kind: 'resting' };
  /** How things stand with the master; null before it is known. */
  status: MasterStatus | null = null;

  constructor(private readonly _transport: Transport) {
    this._follower = new Follower(
      _transport,
      { tail: true },
      {
        prepare: signal => this._prepare(signal),
        load: () => Promise.resolve(),
        live: () => this._live(),
        event: event => this._take(event),
        finished: () => false,
        ended: () => undefined,
        lost: error => this._lost(error)
      }
    );
  }

  /** Call `listener` with the ids of experiments that have changed; an empty set means that all may have. */
  subscribe(listener: ChangeListener): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  /** Call `listener` when the connection changes. */
  subscribeConnection(listener: () => void): () => void {
    this._connectionListeners.add(listener);
    return () => this._connectionListeners.delete(listener);
  }

  resume(): void {
    if (!this._follower.running) {
      this._set({ kind: 'connecting' });
      this._follower.resume();
    }
  }

  pause(): void {
    this._follower.pause();
    this._stopTimer();
    this._set({ kind: 'resting' });
  }

  retry(): void {
    this._follower.retry();
  }

  /** Start the master of the Jupyter server's machine; rejects with words for the user. */
  async start(): Promise<void> {
    this.status = await this._transport.post<MasterStatus>('start');
    this._follower.retry();
  }

  dispose(): void {
    this._follower.dispose();
    this._stopTimer();
    this._listeners.clear();
    this._connectionListeners.clear();
  }

  private async _prepare(signal: AbortSignal): Promise<void> {
    const status = await this._transport.get<MasterStatus>('status', signal);
    this.status = status;
    if (status.state !== 'running') {
      throw new RequestError(status.message, 0, status.state, status.remedy);
    }
  }

  private _live(): void {
    this._set({ kind: 'live' });
    this._since = null;
    if (this._everLive) {
      this._tell(new Set()); // what happened meanwhile nobody has told
    }
    this._everLive = true;
  }

  private _take(event: StreamEvent): void {
    const { experiment_id: id } = event.data as { experiment_id?: number };
    if (id !== undefined) {
      this._changed.add(id);
      this._timer ??= setTimeout(() => {
        this._timer = null;
        const changed = new Set(this._changed);
        this._changed.clear();
        this._tell(changed);
      }, PAUSE_MILLISECONDS);
    }
  }

  private _lost({ state, message, remedy }: RequestError): void {
    this._since ??= Date.now();
    const never = !this._everLive;
    this._set({
      kind: 'lost',
      since: this._since,
      never,
      state,
      message,
      remedy
    });
  }

  private _tell(changed: ReadonlySet<number>): void {
    this._listeners.forEach(listener => listener(changed));
  }

  private _set(connection: Connection): void {
    this.connection = connection;
    this._connectionListeners.forEach(listener => listener());
  }

  private _stopTimer(): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
  }
}

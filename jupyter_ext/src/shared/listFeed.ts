/** Follows the list of experiments, and how things stand with the master. */

import { dataOf } from './api';
import { Follower } from './follower';
import type { Connection, Experiment, MasterStatus } from './model';
import { experimentDetail, masterInfo } from './requests';
import type { StreamEvent } from './sse';
import type { Transport } from './transport';
import { RequestError } from './transport';

const REFRESH_MILLISECONDS = 1500;
const LIMIT = 500;

/** What a list of experiments shows; never changed in place. */
export interface ListView {
  /** How things stand with the master; null before it is known. */
  readonly status: MasterStatus | null;
  /** Newest first. */
  readonly experiments: readonly Experiment[];
  /** How many older ones the master has besides. */
  readonly others?: number;
  readonly connection: Connection;
}

/** The newest experiments of the master, live. Begins with `resume`. */
export class ExperimentListFeed {
  private _view: ListView = {
    status: null,
    experiments: [],
    connection: { kind: 'resting' }
  };
  private readonly _listeners = new Set<(view: ListView) => void>();
  private readonly _follower: Follower;
  private readonly _changed = new Set<number>();
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private _wasLive = false;
  private _lostSince: number | null = null;

  constructor(private readonly _transport: Transport) {
    this._follower = new Follower(
      _transport,
      {},
      {
        prepare: signal => this._prepare(signal),
        load: signal => this._load(signal),
        live: () => this._live(),
        event: event => this._take(event),
        finished: () => false,
        ended: () => undefined,
        lost: error => this._lost(error)
      }
    );
  }

  get view(): ListView {
    return this._view;
  }

  /** Call `listener` at every change, and once now; returns what ends it. */
  subscribe(listener: (view: ListView) => void): () => void {
    this._listeners.add(listener);
    listener(this._view);
    return () => this._listeners.delete(listener);
  }

  /** Start the master of this machine; rejects with words for the user. */
  async start(): Promise<void> {
    const status = await this._transport.post<MasterStatus>('start');
    this._emit({ status });
    this._follower.retry();
  }

  /** Try again now. */
  retry(): void {
    this._follower.retry();
  }

  /** Load everything anew. */
  refresh(): void {
    this._follower.pause();
    this._follower.resume();
  }

  /** No traffic until `resume`. */
  pause(): void {
    this._stopTimer();
    this._follower.pause();
    this._emit({ connection: { kind: 'resting' } });
  }

  resume(): void {
    if (!this._follower.running) {
      this._emit({ connection: { kind: 'connecting' } });
      this._follower.resume();
    }
  }

  dispose(): void {
    this._listeners.clear();
    this._stopTimer();
    this._follower.dispose();
  }

  private async _prepare(signal: AbortSignal): Promise<void> {
    const status = await this._transport.get<MasterStatus>('status', signal);
    this._emit({ status });
    if (status.state !== 'running') {
      throw new RequestError(status.message, 0, status.state, status.remedy);
    }
  }

  private async _load(signal: AbortSignal): Promise<void> {
    const experiments = await dataOf(
      this._transport.api.GET('/api/v1/experiments', {
        params: { query: { limit: LIMIT } },
        signal
      })
    );
    const others =
      experiments.length < LIMIT ? 0 : await this._others(experiments, signal);
    this._changed.clear();
    this._emit({ experiments, others });
  }

  private async _others(
    experiments: readonly Experiment[],
    signal: AbortSignal
  ): Promise<number> {
    const info = await masterInfo(this._transport.api, signal);
    return Math.max((info.experiments ?? 0) - experiments.length, 0);
  }

  private _live(): void {
    this._wasLive = true;
    this._lostSince = null;
    this._emit({ connection: { kind: 'live' } });
  }

  private _lost(error: RequestError): void {
    this._stopTimer();
    if (!this._wasLive && isMasterState(error.state)) {
      this._emit({
        connection: { kind: 'connecting' },
        status: statusOf(error, this._view.status)
      });
      return;
    }
    this._lostSince ??= Date.now();
    const { state, message, remedy } = error;
    this._emit({
      connection: {
        kind: 'lost',
        since: this._lostSince,
        state,
        message,
        remedy
      },
      status: statusOf(error, this._view.status)
    });
  }

  private _take(event: StreamEvent): void {
    const { experiment_id: id, data } = event.data as {
      experiment_id: number;
      data: unknown;
    };
    if (event.event === 'experiment') {
      this._put(data as Experiment);
    }
    if (tellsOfRows(event.event, data)) {
      return;
    }
    this._changed.add(id);
    this._timer ??= setTimeout(
      () => void this._refresh(),
      REFRESH_MILLISECONDS
    );
  }

  /** Ask for those experiments of which events told, and only for them: a list of hundreds is large. */
  private async _refresh(): Promise<void> {
    const timer = this._timer;
    const ids = [...this._changed];
    this._changed.clear();
    try {
      await Promise.all(ids.map(id => this._ask(id)));
    } catch (error) {
      if (error instanceof RequestError) {
        this._follower.fail(error);
      }
    } finally {
      if (this._timer === timer) {
        this._timer = null; // otherwise it was hidden meanwhile, and that of another round is there
      }
    }
    if (this._changed.size > 0 && this._follower.running) {
      this._timer ??= setTimeout(
        () => void this._refresh(),
        REFRESH_MILLISECONDS
      );
    }
  }

  /** Ask for one experiment; one that is gone leaves the list. */
  private async _ask(id: number): Promise<void> {
    try {
      const experiment = await experimentDetail(this._transport.api, id);
      if (this._follower.running) {
        this._put(experiment);
      }
    } catch (error) {
      const gone =
        error instanceof RequestError &&
        error.status === 404 &&
        error.state === 'refused';
      if (!gone) {
        throw error;
      }
      const { experiments } = this._view;
      this._emit({ experiments: experiments.filter(each => each.id !== id) });
    }
  }

  private _put(experiment: Experiment): void {
    this._emit({
      experiments: withExperiment(this._view.experiments, experiment)
    });
  }

  private _stopTimer(): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
  }

  private _emit(change: Partial<ListView>): void {
    this._view = { ...this._view, ...change };
    this._listeners.forEach(listener => listener(this._view));
  }
}

/** Whether an event tells of rows of training metrics only: no experiment of a list is another by that, and there are many. */
function tellsOfRows(event: string, data: unknown): boolean {
  const { kind } = data as { kind?: string };
  return event === 'metrics' && kind === 'training';
}

/** Put an experiment into its place in a list that is newest first. */
export function withExperiment(
  experiments: readonly Experiment[],
  experiment: Experiment
): readonly Experiment[] {
  const index = experiments.findIndex(known => known.id <= experiment.id);
  if (index < 0) {
    return [...experiments, experiment];
  }
  const same = experiments[index]?.id === experiment.id ? 1 : 0;
  return experiments.toSpliced(index, same, experiment);
}

const STATES = [
  'none',
  'starting',
  'unauthorised',
  'mismatch',
  'unreachable'
] as const;

function isMasterState(state: string): state is (typeof STATES)[number] {
  return STATES.some(each => each === state);
}

/** What a failed request says of the master, in the shape of its status. */
function statusOf(
  error: RequestError,
  known: MasterStatus | null
): MasterStatus | null {
  const { state } = error;
  if (!isMasterState(state)) {
    return known;
  }
  const before = known ?? {
    version: '',
    protocol: 0,
    master: null,
    can_start: false
  };
  return { ...before, state, message: error.message, remedy: error.remedy };
}

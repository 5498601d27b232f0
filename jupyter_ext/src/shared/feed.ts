/** Follows one experiment over REST and the event stream. */

import { ExperimentRequests } from './feedRequests';
import { asFinal, FINAL, Follower } from './follower';
import { LogBook } from './logBook';
import type {
  Action,
  Artifact,
  ExperimentId,
  ExperimentSource,
  ExperimentView,
  Medium
} from './model';
import { isTerminal } from './model';
import { Newest } from './newest';
import { changesOutputs, OutputsBook } from './outputsBook';
import { actOn, artifactAddress, mediumContent } from './requests';
import type { StreamEvent } from './sse';
import { SystemBook } from './systemBook';
import type { Transport } from './transport';
import { RequestError } from './transport';
import type { ViewParts } from './view';
import {
  changesBest,
  changesCurves,
  emptyView,
  hasEnded,
  thingOf,
  withBest,
  withConnection,
  withEvent,
  withParts
} from './view';

const REFRESH_MILLISECONDS = 1000;
/** What no event tells of (log lines, time left) is asked for this often while something runs. */
const CALM_MILLISECONDS = 3000;
/** What takes long to answer is asked for the more seldom: rest for each time of work. */
const REST_FOR_WORK = 2;

/** The view of an experiment, or of one trial of it; begins with `resume`, which its constructor calls. */
export class ExperimentFeed implements ExperimentSource {
  private _view: ExperimentView;
  private readonly _listeners = new Set<(view: ExperimentView) => void>();
  private readonly _follower: Follower;
  private readonly _log: LogBook;
  private readonly _system: SystemBook;
  private readonly _outputs: OutputsBook;
  private readonly _ask: ExperimentRequests;
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private _refreshing = false;
  private _curvesChanged = false;
  private _bestChanged = false;
  private _lostSince: number | null = null;
  private _wasLive = false;
  private _generation = new AbortController();
  private readonly _newest = new Newest();
  private _seen = 0;

  constructor(
    private readonly _transport: Transport,
    readonly experimentId: ExperimentId,
    readonly trialId = 0
  ) {
    this._view = emptyView(experimentId, trialId);
    this._log = new LogBook(_transport);
    this._system = new SystemBook(_transport);
    this._outputs = new OutputsBook(_transport);
    this._ask = new ExperimentRequests(_transport, experimentId, trialId);
    this._follower = new Follower(
      _transport,
      { experiment_id: experimentId },
      {
        load: signal => this._load(signal).catch(asFinal),
        live: () => this._live(),
        event: event => this._take(event),
        finished: () => hasEnded(this._view),
        ended: () => this._ended(),
        lost: error => this._lost(error)
      }
    );
    this.resume();
  }

  get view(): ExperimentView {
    return this._view;
  }

  subscribe(listener: (view: ExperimentView) => void): () => void {
    this._listeners.add(listener);
    listener(this._view);
    return () => this._listeners.delete(listener);
  }

  async act(action: Action): Promise<void> {
    const seen = this._seen;
    const answer = await actOn(this._transport.api, this.experimentId, action);
    const known = this._view.experiment;
    if (known && this._newest.takes(this._thing) && seen === this._seen) {
      const experiment = { ...known, ...answer };
      this._emit(withParts(this._view, { experiment }));
    }
    if (this._refreshing) {
      // What it asked for is older than the action, and it may take long.
      const { signal } = this._generation;
      void this._done(this._showExperiment(signal), signal);
    }
    this._refreshSoon(0);
  }

  chooseLog(trialId: number | null): Promise<void> {
    this._log.choose(trialId);
    return this._showLog(async signal => {
      const log = await this._log.newest(this._view, signal);
      const view = withParts(this._view, log);
      return { ...log, ...(await this._system.newest(view, signal)) };
    });
  }

  earlierLogs(): Promise<void> {
    return this._showLog(signal => this._log.earlier(signal));
  }

  chooseOutputs(trialId: number | null): Promise<void> {
    this._outputs.choose(trialId);
    return this._showLog(signal => this._outputs.newest(this._view, signal));
  }

  content({ trial_id: trialId, id }: Medium): Promise<Blob> {
    return mediumContent(this._transport.api, trialId, id);
  }

  fileAddress({ trial_id: trialId, path }: Artifact): string {
    return this._transport.url(artifactAddress(trialId, path));
  }

  async start(): Promise<void> {
    await this._transport.post('start');
    this.retry();
  }

  retry(): void {
    this._follower.retry();
  }

  pause(): void {
    if (this._follower.running) {
      this._stopTimer();
      this._follower.pause();
      this._emit(withConnection(this._view, { kind: 'resting' }));
    }
  }

  resume(): void {
    if (!this._follower.running && !this._follower.finished) {
      this._generation = new AbortController();
      this._emit(withConnection(this._view, { kind: 'connecting' }));
      this._follower.resume();
    }
  }

  dispose(): void {
    this._listeners.clear();
    this._stopTimer();
    this._follower.dispose();
  }

  private async _load(signal: AbortSignal): Promise<void> {
    const asked = this._newest.ask();
    const [experiment, trials, checkpoints, curves] = await Promise.all([
      this._ask.detail(signal),
      this._ask.trials(signal),
      this._ask.checkpoints(signal),
      this._ask.curves(signal)
    ]);
    const known = withParts(this._view, {
      ...(this._newest.takes(this._thing, asked) && { experiment }),
      trials,
      checkpoints,
      curves
    });
    this._curvesChanged = false;
    this._bestChanged = false;
    this._emit(withParts(known, await this._log.newest(known, signal)));
    const system = await this._system.newest(this._view, signal, true);
    this._emit(withParts(this._view, system));
    const outputs = await this._outputs.newest(this._view, signal, true);
    this._emit(withParts(this._view, outputs));
  }

  private async _showLog(
    load: (signal: AbortSignal) => Promise<ViewParts>
  ): Promise<void> {
    const { signal } = this._generation;
    try {
      const parts = await load(signal);
      this._emit(withParts(this._view, parts));
    } catch (error) {
      if (!signal.aborted) {
        throw error;
      }
    }
  }

  private get _thing(): string {
    return `experiment ${this.experimentId}`;
  }

  private _live(): void {
    this._lostSince = null;
    this._wasLive = true;
    this._emit(withConnection(this._view, { kind: 'live' }));
    this._refreshSoon(CALM_MILLISECONDS);
  }

  private _ended(): void {
    this._stopTimer();
    this._emit(withConnection(this._view, { kind: 'ended' }));
  }

  private _take(event: StreamEvent): void {
    const thing = thingOf(event);
    this._newest.takes(thing);
    this._seen += Number(thing === this._thing);
    this._emit(withEvent(this._view, event));
    this._outputs.note(event);
    if (hasEnded(this._view)) {
      this._stopTimer(); // all is loaded once more: what is under way is older
    } else if (changesCurves(event)) {
      this._curvesChanged = true;
      this._bestChanged ||= changesBest(event);
      this._refreshSoon(REFRESH_MILLISECONDS);
    } else if (changesOutputs(event)) {
      this._refreshSoon(REFRESH_MILLISECONDS);
    }
  }

  private _lost(error: RequestError): void {
    this._stopTimer();
    if (error.state === FINAL) {
      this._lostSince = null;
      this._emit(withConnection(this._view, { kind: 'missing' }));
      return;
    }
    this._lostSince ??= Date.now();
    const { state, message, remedy } = error;
    this._emit(
      withConnection(this._view, {
        kind: 'lost',
        since: this._lostSince,
        ...(this._wasLive ? {} : { never: true }),
        state,
        message,
        remedy
      })
    );
  }

  /** Look at what no event tells; at once for 0, else when the master has rested from the last look. */
  private _refreshSoon(least: number): void {
    if (this._timer !== null && least >= CALM_MILLISECONDS) {
      return;
    }
    if (this._refreshing || !this._follower.running) {
      return; // it looks again when it is done
    }
    const now = Date.now();
    const due = now + (least && Math.max(least, this._restsUntil - now));
    if (this._timer !== null && this._due <= due) {
      return;
    }
    this._stopTimer(false);
    this._due = due;
    this._timer = setTimeout(
      () => void this._refresh(this._generation.signal),
      due - now
    );
  }

  private _due = 0;
  private _restsUntil = 0;

  private async _refresh(signal: AbortSignal): Promise<void> {
    this._timer = null;
    this._refreshing = true;
    const begun = Date.now();
    const done = await this._done(this._refreshParts(signal), signal);
    if (!signal.aborted) {
      this._refreshing = false;
    }
    if (!done) {
      return;
    }
    const active =
      this._view.experiment !== null &&
      !isTerminal(this._view.experiment.state);
    if (active && !signal.aborted) {
      const now = Date.now();
      this._restsUntil = now + (now - begun) * REST_FOR_WORK;
      this._refreshSoon(
        this._curvesChanged ? REFRESH_MILLISECONDS : CALM_MILLISECONDS
      );
    }
  }

  /** Wait until something is asked for; whether it is. What fails counts as a loss of the connection. */
  private async _done(
    work: Promise<unknown>,
    signal: AbortSignal
  ): Promise<boolean> {
    try {
      await work;
      return true;
    } catch (error) {
      if (error instanceof RequestError && !signal.aborted) {
        this._follower.fail(error);
      }
      return false;
    }
  }

  /** Each part is shown when it comes: what takes long would be told as it was when it was asked for. */
  private _refreshParts(signal: AbortSignal): Promise<unknown> {
    const changed = this._curvesChanged;
    const validated = this._bestChanged;
    this._curvesChanged = false;
    this._bestChanged = false;
    const show = async (asked: Promise<ViewParts>) => {
      const parts = await asked;
      if (!signal.aborted) {
        this._emit(withParts(this._view, parts));
      }
    };
    return Promise.all([
      this._showExperiment(signal),
      changed && show(this._ask.curves(signal).then(curves => ({ curves }))),
      show(this._log.newest(this._view, signal)),
      show(this._system.newest(this._view, signal)),
      show(this._outputs.newest(this._view, signal)),
      validated && this._showBest(signal)
    ]);
  }

  private async _showExperiment(signal: AbortSignal): Promise<void> {
    const asked = this._newest.ask();
    const experiment = await this._ask.detail(signal);
    if (!signal.aborted && this._newest.takes(this._thing, asked)) {
      this._emit(withParts(this._view, { experiment }));
    }
  }

  private async _showBest(signal: AbortSignal): Promise<void> {
    const asked = this._newest.ask();
    const [trials, checkpoints] = await Promise.all([
      this._ask.trials(signal),
      this._ask.checkpoints(signal)
    ]);
    if (!signal.aborted) {
      const isNewer = (thing: string) => this._newest.takes(thing, asked);
      this._emit(
        withBest(
          this._view,
          trials.filter(({ id }) => isNewer(`trial ${id}`)),
          checkpoints.filter(({ uuid }) => isNewer(`checkpoint ${uuid}`))
        )
      );
    }
  }

  private _stopTimer(forGood = true): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
    if (forGood) {
      this._generation.abort();
      this._generation = new AbortController();
      this._refreshing = false;
    }
  }

  private _emit(view: ExperimentView): void {
    if (view === this._view) {
      return;
    }
    this._view = view;
    this._listeners.forEach(listener => listener(view));
  }
}

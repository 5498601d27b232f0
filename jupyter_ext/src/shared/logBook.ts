/** The loaded lines of a trial's log: a stretch without gaps, up to the newest one. */

import { dataOf } from './api';
import type { ExperimentView, LogLine, LogState } from './model';
import { ofTrial } from './requests';
import type { Transport } from './transport';
import { logTrials } from './view';

const FIRST_LINES = 50;
/** Lines of one page back. */
const PAGE = 500;
/** More lines than these at once are not loaded; those before them count as earlier ones. */
const MOST_NEW = 2000;
/** Older lines go again as new ones come, unless they were asked for. */
const KEPT_LINES = 1000;
/** So many trials are asked for lines, until one has any. */
const MOST_ASKED = 4;

/** What a view shows of a log. */
export interface LogParts {
  readonly logs: readonly LogLine[];
  readonly log: LogState;
}

export class LogBook {
  private _chosen: number | null = null;
  private _trial: number | null = null;
  private _lines: readonly LogLine[] = [];
  private _atBegin = false;
  private _kept = KEPT_LINES;

  constructor(private readonly _transport: Transport) {}

  /** Show the log of this trial; null for the one that is of most interest. */
  choose(trialId: number | null): void {
    this._chosen = trialId;
  }

  /** Load what came since the last time; of another trial than then, the last lines. */
  async newest(view: ExperimentView, signal: AbortSignal): Promise<LogParts> {
    const chosen = this._chosen;
    const wanted = chosen === null ? this._interesting(view) : [chosen];
    for (const trial of wanted) {
      const follows = await this._follow(trial, chosen, signal);
      if (chosen !== this._chosen) {
        return this._parts(); // that choice loads its own lines
      }
      if (follows) {
        return this._parts();
      }
    }
    const silent = wanted[0] ?? null;
    if (silent !== this._trial) {
      this._turnTo(silent);
    }
    return this._parts();
  }

  /** The trials to be asked for lines; the one that is shown is not left for one that has none. */
  private _interesting(view: ExperimentView): number[] {
    const ids = logTrials(view).map(trial => trial.id);
    const shown = ids.filter(id => id === this._trial && this._lines.length);
    return [...new Set([...ids.slice(0, MOST_ASKED), ...shown])];
  }

  /** Load lines of a trial; false if nobody has chosen it and it has none. */
  private async _follow(
    trial: number,
    chosen: number | null,
    signal: AbortSignal
  ): Promise<boolean> {
    const turns = trial !== this._trial;
    const after = turns ? undefined : this._lines.at(-1)?.id;
    const query =
      after === undefined ? { last: FIRST_LINES } : { last: MOST_NEW, after };
    const found = await this._ask(trial, query, signal);
    const silent = chosen === null && after === undefined && found.length === 0;
    if (chosen !== this._chosen || silent) {
      return false;
    }
    if (turns && trial !== this._trial) {
      this._turnTo(trial);
    }
    if (after === this._lines.at(-1)?.id) {
      this._append(found, query.last);
    }
    return true;
  }

  /** Load a page of lines before the first one that is loaded. */
  async earlier(signal: AbortSignal): Promise<LogParts> {
    const trial = this._trial;
    const before = this._lines[0]?.id;
    if (trial !== null && before !== undefined && !this._atBegin) {
      this._kept = Math.max(this._kept, this._lines.length) + PAGE;
      const found = await this._ask(trial, { last: PAGE, before }, signal);
      // Meanwhile another trial may have been chosen, or lines may have gone.
      if (trial === this._trial && before === this._lines[0]?.id) {
        this._lines = [...found, ...this._lines];
        this._atBegin = found.length < PAGE;
      }
    }
    return this._parts();
  }

  private _turnTo(trial: number | null): void {
    this._trial = trial;
    this._lines = [];
    this._atBegin = false;
    this._kept = KEPT_LINES;
  }

  private _append(found: readonly LogLine[], asked: number): void {
    const newest = this._lines.at(-1)?.id ?? 0;
    const fresh = found.filter(line => line.id > newest);
    if (this._lines.length === 0) {
      this._atBegin = fresh.length < asked;
    }
    const gap = newest > 0 && fresh.length === asked;
    const all = gap ? fresh : [...this._lines, ...fresh];
    if (fresh.length > 0) {
      this._lines = all.slice(-this._kept);
    }
    this._atBegin &&= !gap && all.length <= this._kept;
  }

  private _parts(): LogParts {
    const { _trial: trialId, _chosen: chosen, _atBegin: atBegin } = this;
    return {
      logs: this._lines,
      log: { trialId, chosen: chosen !== null, atBegin }
    };
  }

  private _ask(
    trial: number,
    query: { last: number; after?: number; before?: number },
    signal: AbortSignal
  ): Promise<LogLine[]> {
    const { api } = this._transport;
    const params = { ...ofTrial(trial), query };
    return dataOf(
      api.GET('/api/v1/trials/{trial_id}/logs', { params, signal })
    );
  }
}

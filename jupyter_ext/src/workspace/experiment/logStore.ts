/** The log of one trial: its end first, all of it when that is wanted, and what comes anew. */

import { type Api, dataOf } from '../../shared/api';
import type { LogLine } from '../../shared/model';
import { ofTrial } from '../../shared/requests';
import { type ShownLine, shownLines } from './logLines';

export const FIRST_LINES = 1000;
const PAGE = 10_000;
/** More lines than these are not held in memory; older ones can be downloaded by det experiment logs. */
export const MOST_LINES = 500_000;

export class LogStore {
  private readonly _listeners = new Set<() => void>();
  private readonly _controller = new AbortController();
  private _loading: Promise<void> | null = null;
  private _wholeAsked: Promise<void> | null = null;
  lines: readonly ShownLine[] = [];
  /** The first line of the trial is there. */
  atBegin = false;
  /** The end has been loaded. */
  known = false;
  error: unknown = null;

  constructor(
    private readonly _api: Api,
    private readonly _trialId: number
  ) {}

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  dispose(): void {
    this._controller.abort();
    this._listeners.clear();
  }

  /** Load what is new; the end of the log at first. */
  async newest(): Promise<void> {
    this._loading ??= this._try(() => this._newest()).finally(() => {
      this._loading = null;
    });
    return this._loading;
  }

  /** Load a stretch before the first line that is there. */
  earlier(): Promise<void> {
    return this._try(() => this._earlier());
  }

  /** Load all lines, page by page. */
  async whole(): Promise<void> {
    this._wholeAsked ??= this._try(async () => {
      if (!this.known) {
        await this._newest();
      }
      while (!this.atBegin && this.lines.length < MOST_LINES) {
        await this._earlier();
      }
    }).finally(() => {
      this._wholeAsked = null;
    });
    return this._wholeAsked;
  }

  private async _newest(): Promise<void> {
    const last = this.lines.at(-1)?.line.id;
    if (last === undefined) {
      const found = await this._ask({ last: FIRST_LINES });
      this.lines = shownLines(found);
      this.atBegin = found.length < FIRST_LINES;
      this.known = true;
      this._tell();
      return;
    }
    for (;;) {
      const after = this.lines.at(-1)?.line.id ?? 0;
      const found = await this._ask({ after, limit: PAGE });
      if (found.length > 0) {
        this.lines = [...this.lines, ...shownLines(found, this.lines)];
        this._tell();
      }
      if (found.length < PAGE) {
        return;
      }
    }
  }

  private async _earlier(): Promise<void> {
    const before = this.lines[0]?.line.id;
    if (before === undefined || this.atBegin) {
      this.atBegin ||= this.known;
      return;
    }
    const found = await this._ask({ last: PAGE, before });
    if (before === this.lines[0]?.line.id) {
      // Whether a line is part of a traceback is known from its begin on.
      const edge = this.lines.slice(0, 200).map(({ line }) => line);
      const earlier = shownLines([...found, ...edge]);
      this.lines = [...earlier, ...this.lines.slice(edge.length)];
      this.atBegin = found.length < PAGE;
      this._tell();
    }
  }

  private _ask(query: {
    last?: number;
    before?: number;
    after?: number;
    limit?: number;
  }): Promise<LogLine[]> {
    const { signal } = this._controller;
    const params = { ...ofTrial(this._trialId), query };
    return dataOf(
      this._api.GET('/api/v1/trials/{trial_id}/logs', { params, signal })
    );
  }

  private async _try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.error = null;
    } catch (error) {
      if (this._controller.signal.aborted) {
        return;
      }
      this.error = error;
    }
    this._tell();
  }

  private _tell(): void {
    this._listeners.forEach(listener => listener());
  }
}

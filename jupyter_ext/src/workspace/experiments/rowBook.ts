/** The rows of the table: all ids in order, and of the rows those that are near to what is seen. */

import { type Api, dataOf } from '../../shared/api';
import type { ExperimentId } from '../../shared/model';
import type { RequestError } from '../../shared/transport';
import { asError } from '../data/useLoad';
import { type Filters, isSensitive, listQuery, queryOf } from './filters';
import type { List, Row } from './rows';

/** What the table shows. */
export interface Question {
  readonly filters: Filters;
  /** As `order_by` has it; empty for newest first. */
  readonly sort: string;
  readonly hparams: boolean;
  readonly metrics: readonly string[];
}

export interface Book {
  readonly ids: readonly ExperimentId[];
  /** How many there are; more than ids where these are cut off. */
  readonly total: number;
  readonly notice: string;
  readonly rows: ReadonlyMap<ExperimentId, Row>;
  /** Whether an answer to the present question is there. */
  readonly answered: boolean;
  readonly loading: boolean;
  /** What is wrong with the query. */
  readonly problem: RequestError | null;
  /** Why the list, or further rows, could not be loaded. */
  readonly error: RequestError | null;
}

const FIRST_ROWS = 60;
const MOST_ROWS_ASKED = 200;
/** Rows that are kept; others are asked for again when they are seen. */
const MOST_KEPT = 3000;
/** A list whose order may change is asked for at most so often. */
const LIST_MILLISECONDS = 3000;

const EMPTY: Book = {
  ids: [],
  total: 0,
  notice: '',
  rows: new Map(),
  answered: false,
  loading: true,
  problem: null,
  error: null
};

/** Loads what is asked for and seen; tells of each change. */
export class RowBook {
  private readonly _listeners = new Set<() => void>();
  private _question: Question | null = null;
  private _list = new AbortController();
  private _more = new AbortController();
  private _asking = false;
  private _seen: readonly ExperimentId[] = [];
  private readonly _stale = new Set<ExperimentId>();
  private _timer: ReturnType<typeof setTimeout> | null = null;
  /** The last list with anything in it: it stays in sight while a query is being written. */
  private _last: Pick<Book, 'ids' | 'total' | 'notice'> = EMPTY;
  view: Book = EMPTY;

  constructor(private readonly _api: Api) {}

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  /** Show something else; what is shown stays until the answer is there. */
  ask(question: Question): void {
    const before = this._question;
    if (before !== null && sameText(before, question)) {
      return;
    }
    this._question = question;
    const sameList =
      before !== null &&
      this.view.answered &&
      sameText(
        [before.filters, before.sort],
        [question.filters, question.sort]
      );
    if (sameList) {
      this._more.abort();
      this._asking = false;
      this.view.rows.forEach((_, id) => this._stale.add(id));
      void this._load();
      return;
    }
    this._set({ answered: false });
    void this._askList(FIRST_ROWS);
  }

  /** Load the rows of these ids, which are seen now. */
  see(ids: readonly ExperimentId[]): void {
    this._seen = ids;
    void this._load();
  }

  /** What has happened to experiments; an empty set says that anything may have. */
  changed(ids: ReadonlySet<ExperimentId>): void {
    if (this._question === null) {
      return;
    }
    const all = ids.size === 0;
    this.view.rows.forEach((_, id) => {
      if (all || ids.has(id)) {
        this._stale.add(id);
      }
    });
    void this._load();
    const known = new Set(this.view.ids);
    const { filters, sort } = this._question;
    const others =
      all ||
      this.view.error !== null ||
      isSensitive(filters, sort) ||
      [...ids].some(id => !known.has(id));
    if (others) {
      this._timer ??= setTimeout(
        () => {
          this._timer = null;
          void this._askList(0);
        },
        all ? 0 : LIST_MILLISECONDS / 2
      );
    }
  }

  /** Load everything again, after an error or an action. */
  reload(): void {
    this.view.rows.forEach((_, id) => this._stale.add(id));
    void this._askList(this.view.answered ? 0 : FIRST_ROWS);
  }

  dispose(): void {
    this._listeners.clear();
    this._list.abort();
    this._more.abort();
    if (this._timer !== null) {
      clearTimeout(this._timer);
    }
  }

  private async _askList(rows: number): Promise<void> {
    const question = this._question!;
    this._list.abort();
    const controller = (this._list = new AbortController());
    const { signal } = controller;
    this._set({ loading: true });
    const query = {
      ...listQuery(question.filters),
      order_by: question.sort || undefined,
      rows,
      ...extras(question)
    };
    try {
      const asked = this._api.GET('/api/v1/experiment-list', {
        params: { query },
        signal
      });
      const list = (await dataOf(asked)) as List;
      if (!signal.aborted) {
        this._take(list, rows > 0);
      }
    } catch (error) {
      if (!signal.aborted) {
        await this._refused(asError(error), question, signal);
      }
    }
  }

  private _take(list: List, withRows: boolean): void {
    const rows = new Map(this.view.rows);
    list.rows.forEach(row => {
      rows.set(row.experiment.id, row);
      this._stale.delete(row.experiment.id);
    });
    const { ids, total, notice } = list;
    if (withRows) {
      // Rows of an earlier question may lack what columns show now.
      const fresh = new Set(list.rows.map(row => row.experiment.id));
      rows.forEach((_, id) => {
        if (!fresh.has(id)) {
          this._stale.add(id);
        }
      });
    }
    this._set({
      ids: sameText(ids, this.view.ids) ? this.view.ids : ids,
      total,
      notice,
      rows,
      answered: true,
      loading: false,
      problem: null,
      error: null
    });
    if (ids.length > 0) {
      this._last = { ids: this.view.ids, total, notice };
    }
    void this._load();
  }

  private async _refused(
    error: RequestError,
    { filters }: Question,
    signal: AbortSignal
  ): Promise<void> {
    if (error.status !== 400 && error.status !== 422) {
      this._set({ loading: false, error });
      return;
    }
    // The place in the message is to be that in what the user has typed, not in what was made of it.
    let problem = error;
    const query = queryOf(filters.query);
    if (filters.states.length > 1 && query !== '') {
      const params = { query: { query, rows: 0 } };
      await dataOf(
        this._api.GET('/api/v1/experiment-list', { params, signal })
      ).catch((typed: unknown) => {
        problem = asError(typed);
      });
    }
    if (!signal.aborted) {
      this._set({ loading: false, problem, ...this._last });
    }
  }

  /** One request at a time: who scrolls fast passes over most rows. */
  private async _load(): Promise<void> {
    const { rows, error } = this.view;
    const ids = this._seen
      .filter(id => !rows.has(id) || this._stale.has(id))
      .slice(0, MOST_ROWS_ASKED);
    if (this._asking || ids.length === 0 || error !== null) {
      return;
    }
    const controller = (this._more = new AbortController());
    const { signal } = controller;
    this._asking = true;
    try {
      const asked = this._api.GET('/api/v1/experiment-rows', {
        params: { query: { id: ids, ...extras(this._question!) } },
        signal
      });
      const found = (await dataOf(asked)) as Row[];
      if (signal.aborted) {
        return;
      }
      this._asking = false;
      this._put(ids, found);
      void this._load();
    } catch (failed) {
      if (!signal.aborted) {
        this._asking = false;
        this._set({ error: asError(failed) });
      }
    }
  }

  private _put(asked: readonly ExperimentId[], found: readonly Row[]): void {
    const rows = new Map(this.view.rows);
    const there = new Set(found.map(({ experiment }) => experiment.id));
    found.forEach(row => {
      rows.delete(row.experiment.id); // the newest stand last
      rows.set(row.experiment.id, row);
    });
    asked.forEach(id => this._stale.delete(id));
    const gone = new Set(asked.filter(id => !there.has(id)));
    gone.forEach(id => rows.delete(id));
    this._seen = this._seen.filter(id => !gone.has(id));
    const seen = new Set(this._seen);
    for (const id of rows.keys()) {
      if (rows.size <= MOST_KEPT) {
        break;
      }
      if (!seen.has(id)) {
        rows.delete(id);
      }
    }
    const { ids, total } = this.view;
    const left = gone.size === 0 ? ids : ids.filter(id => !gone.has(id));
    this._set({ rows, ids: left, total: total - (ids.length - left.length) });
  }

  private _set(change: Partial<Book>): void {
    this.view = { ...this.view, ...change };
    this._listeners.forEach(listener => listener());
  }
}

function extras({ hparams, metrics }: Question): {
  hparams?: true;
  metric: string[];
} {
  return { hparams: hparams || undefined, metric: [...metrics] };
}

function sameText(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

import { describe, expect, it } from 'vitest';

import { LogBook } from '../../src/shared/logBook';
import type { LogLine } from '../../src/shared/model';
import { detail, logLine, trial, view } from './examples';
import { AWAY, held, ScriptedTransport } from './scriptedTransport';

const { signal } = new AbortController();
const SEARCH = view({ trials: [trial(), trial({ id: 4 })] });

/** The master's logs: lines of each trial, and what was asked for. */
class Logs {
  readonly lines = new Map<number, LogLine[]>();
  readonly asked: Array<[number, Record<string, number>]> = [];
  /** What an answer waits for. */
  wait: Promise<unknown> = Promise.resolve();
  readonly book: LogBook;

  constructor() {
    const trials = Array.from({ length: 100 }, (_, id) => id);
    this.book = new LogBook(
      new ScriptedTransport(
        Object.fromEntries(
          trials.map(id => [
            `master/trials/${id}/logs`,
            (query: URLSearchParams) => this._answer(id, query)
          ])
        )
      )
    );
  }

  private async _answer(id: number, query: URLSearchParams) {
    const asked = Object.fromEntries(
      [...query].map(([name, value]) => [name, Number(value)])
    );
    this.asked.push([id, asked]);
    const { after = 0, before = Infinity, last = 0 } = asked;
    const found = (this.lines.get(id) ?? [])
      .filter(line => line.id > after && line.id < before)
      .slice(-last);
    await this.wait;
    return found;
  }

  print(trialId: number, count: number): void {
    const known = this.lines.get(trialId) ?? [];
    const next = (known.at(-1)?.id ?? trialId * 100_000) + 1;
    const fresh = Array.from({ length: count }, (_, index) =>
      logLine(`line ${known.length + index + 1}`, next + index)
    );
    this.lines.set(trialId, [...known, ...fresh]);
  }
}

const texts = (lines: readonly LogLine[]) => lines.map(line => line.text);

/** `line 4` up to `line 9`. */
const stretch = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, at) => `line ${first + at}`);

describe('the log of a trial', () => {
  it('begins with the last lines, and goes on with what is new only', async () => {
    const logs = new Logs();
    logs.print(3, 120);
    const first = await logs.book.newest(view(), signal);
    expect(texts(first.logs)).toEqual(stretch(71, 120));
    expect(first.log).toEqual({ trialId: 3, chosen: false, atBegin: false });
    logs.print(3, 2);
    const next = await logs.book.newest(view(), signal);
    expect(texts(next.logs)).toEqual(stretch(71, 122));
    const newest = first.logs.at(-1)?.id;
    expect(logs.asked[1]).toEqual([3, { last: 2000, after: newest }]);
    const still = await logs.book.newest(view(), signal);
    expect(still.logs).toBe(next.logs);
  });

  it('is loaded back page by page, up to its begin', async () => {
    const logs = new Logs();
    logs.print(3, 700);
    await logs.book.newest(view(), signal);
    const page = await logs.book.earlier(signal);
    expect(texts(page.logs)).toEqual(stretch(151, 700));
    expect(page.log.atBegin).toBe(false);
    const all = await logs.book.earlier(signal);
    expect(texts(all.logs)).toEqual(stretch(1, 700));
    expect(all.log.atBegin).toBe(true);
    await logs.book.earlier(signal);
    expect(logs.asked).toHaveLength(3);
  });

  it('knows its begin where there are few lines', async () => {
    const logs = new Logs();
    logs.print(3, 10);
    expect((await logs.book.newest(view(), signal)).log.atBegin).toBe(true);
  });

  it('lets old lines go as new ones come, but not those that were asked for', async () => {
    const logs = new Logs();
    logs.print(3, 600);
    await logs.book.newest(view(), signal);
    logs.print(3, 1100);
    const kept = await logs.book.newest(view(), signal);
    expect(texts(kept.logs)).toEqual(stretch(701, 1700));
    expect(kept.log.atBegin).toBe(false);
    await logs.book.earlier(signal);
    logs.print(3, 1);
    const more = await logs.book.newest(view(), signal);
    expect(more.logs[0]?.text).toBe('line 202');
    expect(more.logs.at(-1)?.text).toBe('line 1701');
  });

  it('never has a gap: after very many new lines, those before them are earlier ones', async () => {
    const logs = new Logs();
    logs.print(3, 10);
    await logs.book.newest(view(), signal);
    logs.print(3, 5000);
    const jumped = await logs.book.newest(view(), signal);
    expect(texts(jumped.logs)).toEqual(stretch(4011, 5010));
    expect(jumped.log.atBegin).toBe(false);
    const page = await logs.book.earlier(signal);
    expect(texts(page.logs)).toEqual(stretch(3511, 5010));
  });

  it('is that of the trial that was chosen, until another is', async () => {
    const logs = new Logs();
    logs.print(3, 5);
    logs.print(4, 7);
    expect((await logs.book.newest(SEARCH, signal)).log.trialId).toBe(4);
    logs.book.choose(3);
    const chosen = await logs.book.newest(SEARCH, signal);
    expect(chosen.log).toEqual({ trialId: 3, chosen: true, atBegin: true });
    expect(texts(chosen.logs)).toEqual(stretch(1, 5));
    logs.book.choose(null);
    expect((await logs.book.newest(SEARCH, signal)).log).toMatchObject({
      trialId: 4,
      chosen: false
    });
  });

  it('is that of a trial that has lines, until one of more interest has some', async () => {
    const logs = new Logs();
    const search = view({
      trials: [3, 4, 5].map(id => trial({ id, state: 'RUNNING' }))
    });
    const none = await logs.book.newest(search, signal);
    expect([none.log.trialId, none.logs]).toEqual([5, []]);
    logs.print(3, 2);
    const oldest = await logs.book.newest(search, signal);
    expect([oldest.log.trialId, texts(oldest.logs)]).toEqual([
      3,
      stretch(1, 2)
    ]);
    logs.print(3, 1);
    logs.asked.length = 0;
    const more = await logs.book.newest(search, signal);
    expect(texts(more.logs)).toEqual(stretch(1, 3));
    expect(logs.asked.map(([id]) => id)).toEqual([5, 4, 3]);
    logs.print(5, 1);
    const newest = await logs.book.newest(search, signal);
    expect([newest.log.trialId, texts(newest.logs)]).toEqual([
      5,
      stretch(1, 1)
    ]);
    logs.asked.length = 0;
    await logs.book.newest(search, signal);
    expect(logs.asked.map(([id]) => id)).toEqual([5]);
  });

  it('is that of a failed trial that has lines, where the experiment has failed', async () => {
    const logs = new Logs();
    [3, 4, 6].forEach(id => logs.print(id, 1));
    const trials = [
      trial({ id: 3, state: 'ERROR' }),
      trial({ id: 4, state: 'COMPLETED' }),
      trial({ id: 5, state: 'ERROR' }),
      trial({ id: 6, state: 'CANCELED' })
    ];
    const failed = view({ trials, experiment: detail({ state: 'ERROR' }) });
    expect((await logs.book.newest(failed, signal)).log.trialId).toBe(3);
  });

  it('of a chosen trial stays empty where that has no lines', async () => {
    const logs = new Logs();
    logs.print(4, 1);
    logs.book.choose(3);
    const chosen = await logs.book.newest(SEARCH, signal);
    expect([chosen.log.trialId, chosen.logs]).toEqual([3, []]);
  });

  it('asks few of many silent trials, and does not leave the one that is shown', async () => {
    const logs = new Logs();
    logs.print(3, 1);
    await logs.book.newest(view(), signal);
    logs.asked.length = 0;
    const ids = Array.from({ length: 50 }, (_, index) => index + 3);
    const many = view({ trials: ids.map(id => trial({ id })) });
    expect((await logs.book.newest(many, signal)).log.trialId).toBe(3);
    expect(logs.asked.map(([id]) => id)).toEqual([52, 51, 50, 49, 3]);
  });

  it('drops what comes late for a trial that is no longer chosen', async () => {
    const logs = new Logs();
    logs.print(3, 900);
    logs.print(4, 7);
    await logs.book.newest(SEARCH, signal);
    logs.book.choose(3);
    const slow = held<void>();
    logs.wait = slow.promise;
    const late = logs.book.newest(SEARCH, signal);
    logs.wait = Promise.resolve();
    logs.book.choose(null);
    const now = await logs.book.newest(SEARCH, signal);
    slow.release();
    expect((await late).logs).toBe(now.logs);
    expect(now.log.trialId).toBe(4);

    logs.book.choose(3);
    await logs.book.newest(SEARCH, signal);
    const page = held<void>();
    logs.wait = page.promise;
    const earlier = logs.book.earlier(signal);
    logs.wait = Promise.resolve();
    logs.book.choose(4);
    const other = await logs.book.newest(SEARCH, signal);
    page.release();
    expect((await earlier).logs).toBe(other.logs);
  });

  it('is as it was after a request that failed', async () => {
    const logs = new Logs();
    logs.print(3, 100);
    const before = await logs.book.newest(view(), signal);
    logs.wait = Promise.reject(AWAY);
    await expect(logs.book.earlier(signal)).rejects.toBe(AWAY);
    logs.wait = Promise.resolve();
    expect((await logs.book.newest(view(), signal)).logs).toBe(before.logs);
    expect((await logs.book.earlier(signal)).logs).toHaveLength(100);
  });
});

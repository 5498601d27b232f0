/** Lines of logs: levels, colours, filters, and loading them page by page. */
import { expect, test } from 'vitest';

import {
  ALL_LINES,
  colouredParts,
  filtered,
  levelOf,
  logText,
  nextError,
  plainText,
  shownLines
} from '../../src/workspace/experiment/logLines';
import { LogStore } from '../../src/workspace/experiment/logStore';
import type { LogLine } from '../../src/shared/model';
import { logLine } from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';

const lines = (...texts: string[]) =>
  shownLines(texts.map((text, index) => logLine(text, index + 1)));

test('levels are read from what a line says', () => {
  expect(levelOf('12:00 ERROR cannot')).toBe('error');
  expect(levelOf('UserWarning: old')).toBe('warning');
  expect(levelOf('DEBUG x')).toBe('debug');
  expect(levelOf('no errors so far')).toBe('info');
});

test('the lines of a traceback are an error up to what it was', () => {
  const shown = lines(
    'a',
    'Traceback (most recent call last):',
    '  File "x"',
    'KeyError: 1',
    'b'
  );

  expect(shown.map(({ level }) => level)).toEqual([
    'info',
    'error',
    'error',
    'error',
    'info'
  ]);
  const [first] = [shown.slice(0, 3)];
  expect(shownLines([logLine('KeyError: 1', 9)], first)[0]?.level).toBe(
    'error'
  );
});

test('colours are kept and the rest of what terminals do is left out', () => {
  expect(plainText('\u001b[31mred\u001b[0m\u001b[2K')).toBe('red');
  expect(plainText('10 %\r20 %\r30 %')).toBe('30 %');
  expect(colouredParts('a\u001b[1;31mb\u001b[0mc')).toEqual([
    { text: 'a', colour: -1, bold: false },
    { text: 'b', colour: 1, bold: true },
    { text: 'c', colour: -1, bold: false }
  ]);
});

test('lines are found by text, level, process and time', () => {
  const at = (
    text: string,
    id: number,
    time: string,
    rank: number
  ): LogLine => ({
    ...logLine(text, id),
    time,
    rank
  });
  const shown = shownLines([
    at('Loss 1', 1, '2026-11-20T11:00:00Z', 0),
    at('WARNING loss', 2, '2026-11-20T12:00:00Z', 1),
    at('other', 3, '2026-11-20T13:00:00Z', 1)
  ]);
  const ids = (change: Partial<typeof ALL_LINES>) =>
    filtered(shown, { ...ALL_LINES, ...change }).map(({ line }) => line.id);

  expect(ids({})).toEqual([1, 2, 3]);
  expect(ids({ search: 'loss' })).toEqual([1, 2]);
  expect(ids({ level: 'warning' })).toEqual([2]);
  expect(ids({ process: 'rank 1' })).toEqual([2, 3]);
  expect(
    ids({ from: '2026-11-20T11:30:00Z', to: '2026-11-20T12:30:00Z' })
  ).toEqual([2]);
});

test('errors are gone to one after the other, and from the top again', () => {
  const shown = lines('a', 'ERROR 1', 'ERROR still', 'b', 'ERROR 2');

  expect(nextError(shown, -1)).toBe(1);
  expect(nextError(shown, 1)).toBe(4);
  expect(nextError(shown, 4)).toBe(1);
  expect(nextError(lines('a'), -1)).toBe(-1);
});

test('a log of 100,000 lines is searched within a moment', () => {
  const shown = shownLines(
    Array.from({ length: 100_000 }, (_, id) =>
      logLine(`step ${id} loss ${id / 7}`, id + 1)
    )
  );
  const begin = performance.now();

  const found = filtered(shown, { ...ALL_LINES, search: 'STEP 99999' });

  expect(found).toHaveLength(1);
  expect(performance.now() - begin).toBeLessThan(1000);
  expect(logText(found)).toBe(
    '2026-11-20T11:55:00Z step 99999 loss 14285.57142857143\n'
  );
});

/** Answers as the master does: the last lines, those before one, those after one. */
class LogTransport extends ScriptedTransport {
  constructor(private readonly _all: LogLine[]) {
    super({
      'master/trials/3/logs': (query: URLSearchParams) => this._lines(query)
    });
  }

  add(line: LogLine): void {
    this._all.push(line);
  }

  private _lines(query: URLSearchParams): LogLine[] {
    const {
      last,
      before = Infinity,
      after = 0,
      limit = 1000
    } = Object.fromEntries(
      [...query].map(([name, value]) => [name, Number(value)])
    );
    const wanted = this._all.filter(({ id }) => id < before && id > after);
    return last === undefined ? wanted.slice(0, limit) : wanted.slice(-last);
  }
}

test('a long log shows its end first, and is loaded whole when that is wanted', async () => {
  const all = Array.from({ length: 25_000 }, (_, index) =>
    logLine(`line ${index}`, index + 1)
  );
  const transport = new LogTransport(all);
  const store = new LogStore(transport.api, 3);

  await store.newest();
  expect(store.lines).toHaveLength(1000);
  expect(store.atBegin).toBe(false);

  await store.whole();
  expect(store.lines.map(({ line }) => line.id)).toEqual(
    all.map(({ id }) => id)
  );
  expect(store.atBegin).toBe(true);
  expect(transport.requests).toHaveLength(4);

  transport.add(logLine('fresh', 25_001));
  await store.newest();
  expect(store.lines.at(-1)?.text).toBe('fresh');
  expect(store.lines).toHaveLength(25_001);
});

// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/preact';
import { afterEach, expect, test } from 'vitest';

import {
  countChanges,
  diffRows,
  foldRows,
  unifiedLines
} from '../../src/workspace/parts/diffRows';
import { DiffView } from '../../src/workspace/parts/diffView';

afterEach(cleanup);

const lines = (...texts: string[]) => `${texts.join('\n')}\n`;
const many = (count: number, word = 'line') =>
  lines(...Array.from({ length: count }, (_, at) => `${word} ${at}`));

function show(before: string, after: string) {
  render(
    <DiffView
      before={before}
      after={after}
      beforeLabel="Experiment 3"
      afterLabel="Experiment 7"
      language="python"
    />
  );
}

test('a line that has changed stands beside the one before', () => {
  const rows = diffRows(lines('a', 'b', 'c'), lines('a', 'B', 'B2', 'c'));

  expect(
    rows.map(({ kind, before, after }) => [kind, before?.text, after?.text])
  ).toEqual([
    ['same', 'a', 'a'],
    ['changed', 'b', 'B'],
    ['changed', undefined, 'B2'],
    ['same', 'c', 'c']
  ]);
  expect(rows.at(-1)).toMatchObject({
    before: { number: 3 },
    after: { number: 4 }
  });
  expect(countChanges(rows)).toEqual({ removed: 1, added: 2 });
});

test('line ends of Windows and the end of the text make no difference', () => {
  expect(countChanges(diffRows('a\r\nb\r\n', 'a\nb'))).toEqual({
    removed: 0,
    added: 0
  });
  expect(diffRows('', '')).toEqual([]);
  expect(countChanges(diffRows('', 'a'))).toEqual({ removed: 0, added: 1 });
});

test('what is far from changes is folded, and nothing is lost', () => {
  const before = many(40);
  const rows = diffRows(before, before.replace('line 20\n', 'other\n'));

  const stretches = foldRows(rows);

  expect(
    stretches.map(({ folded, rows: all }) => [folded, all.length])
  ).toEqual([
    [true, 17],
    [false, 7],
    [true, 16]
  ]);
});

test('one below the other, what went comes before what came', () => {
  const shown = unifiedLines(diffRows(lines('a', 'b'), lines('c', 'd')));

  expect(shown.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'removed a',
    'removed b',
    'added c',
    'added d'
  ]);
});

test('texts of 20,000 lines that differ everywhere are compared quickly', () => {
  const started = performance.now();

  const rows = diffRows(many(20_000, 'old'), many(20_000, 'new'));

  expect(performance.now() - started).toBeLessThan(3000);
  expect(countChanges(rows)).toEqual({ removed: 20_000, added: 20_000 });
});

test('marks and words say what was removed and added', () => {
  show(lines('x = 1'), lines('x = 2'));

  expect(screen.getByText('1 line removed, 1 line added')).toBeTruthy();
  expect(screen.getByText('−')).toBeTruthy();
  expect(screen.getByText('+')).toBeTruthy();
  expect(screen.getByText('removed').className).toBe('det-hidden');
  expect(screen.getByText('x = 1').tagName).toBe('DEL');
  expect(screen.getByText('x = 2').tagName).toBe('INS');
  expect(
    screen.getByRole('table', {
      name: 'Experiment 3 compared with Experiment 7, python'
    })
  ).toBeTruthy();
});

test('a click shows unchanged lines that are folded', () => {
  const before = many(40);
  show(before, before.replace('line 39', 'other'));
  expect(screen.queryByText('line 0')).toBeNull();

  fireEvent.click(screen.getByText('Show 36 lines unchanged'));

  expect(screen.getAllByText('line 0')).toHaveLength(2);
});

test('of a large difference the rest is drawn when asked for', () => {
  show('', many(600));
  const drawn = () => document.querySelectorAll('ins').length;
  expect(drawn()).toBe(500);

  fireEvent.click(screen.getByText('Show more: 100 lines not drawn yet'));

  expect(drawn()).toBe(600);
});

test('equal texts are said to be equal', () => {
  show('a', 'a');

  expect(
    screen.getByText('Experiment 3 and Experiment 7 are the same.')
  ).toBeTruthy();
});

test('HTML in the texts stays text', () => {
  show('', '<img src=x onerror=alert(1)>');

  expect(document.querySelector('img')).toBeNull();
});

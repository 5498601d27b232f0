/** What a query may go on with at the cursor. Pure. */

import { inQuotes, quoted, STATES } from './filters';
import type { ExperimentNames } from './rows';

/** What stands at the cursor: what is expected there, and what of it is written. */
export interface Cursor {
  readonly expects: 'name' | 'operator' | 'value' | 'joiner';
  /** The name that is compared, for operators and values. */
  readonly name: string;
  /** What is written of it before the cursor. */
  readonly prefix: string;
  /** Where what is chosen goes. */
  readonly from: number;
  readonly to: number;
}

export interface Suggestion {
  /** What is shown. */
  readonly label: string;
  /** What is written. */
  readonly text: string;
  readonly detail: string;
}

const NAME = /(?:[^\s=<>!~:"'(),]|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)+/y;
const OPERATOR = /[<>=!~:]=?|[A-Za-z]+/y;
const VALUE = /(?:[^\s"'(),]+|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)/y;
const COMPLETE = /^([<>=~:]|[<>!=]=)$/;
const WORD_OPERATORS = new Set(['in', 'contains']);

/** Read a query up to the cursor; null inside of nothing that can be completed. */
export function cursorAt(text: string, cursor: number): Cursor {
  let expects: Cursor['expects'] = 'name';
  let name = '';
  let several = false;
  let at = 0;
  const here = (from: number, to: number): Cursor => ({
    expects,
    name,
    prefix: text.slice(from, cursor),
    from,
    to
  });
  for (;;) {
    while (/\s/.test(text.charAt(at)) && at < cursor) {
      at += 1;
    }
    const sign = text.charAt(at);
    if (at >= cursor) {
      const end = expects === 'operator' ? at : endOf(text, at, expects);
      return here(cursor, Math.max(end, cursor));
    }
    if (sign === '(' || sign === ')' || sign === ',') {
      at += 1;
      several = sign === ')' ? false : several || expects === 'value';
      expects =
        sign === ')'
          ? 'joiner'
          : expects === 'joiner' && sign === ',' && several
            ? 'value'
            : expects;
      continue;
    }
    const end = endOf(text, at, expects);
    const token = text.slice(at, end);
    const complete = expects === 'operator' && COMPLETE.test(token);
    if (end >= cursor && !(complete && end === cursor)) {
      return here(at, end);
    }
    at = Math.max(end, at + 1);
    switch (expects) {
      case 'name':
        if (!/^(not|and|or)$/i.test(token)) {
          name = token;
          expects = 'operator';
        }
        break;
      case 'operator':
        if (complete || WORD_OPERATORS.has(token.toLowerCase())) {
          expects = 'value';
        }
        break;
      case 'value':
        expects = 'joiner';
        break;
      case 'joiner':
        expects = 'name';
        break;
    }
  }
}

function endOf(text: string, at: number, expects: Cursor['expects']): number {
  const pattern = {
    name: NAME,
    operator: OPERATOR,
    value: VALUE,
    joiner: NAME
  }[expects];
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

type Kind = 'text' | 'number' | 'time' | 'yes' | 'state';
// As det_native/schema/query/fields.py has them.
const FIELDS: Readonly<Record<string, Kind>> = {
  archived: 'yes',
  created: 'time',
  description: 'text',
  duration: 'time',
  ended: 'time',
  forked_from: 'number',
  framework: 'text',
  id: 'number',
  label: 'text',
  name: 'text',
  progress: 'number',
  project: 'text',
  searcher: 'text',
  slots: 'number',
  state: 'state',
  test: 'yes',
  trials: 'number',
  user: 'text'
};

const OPERATORS: Readonly<Record<string, string>> = {
  '=': 'equal to',
  '!=': 'not equal to',
  '<': 'less than',
  '<=': 'at most',
  '>': 'greater than',
  '>=': 'at least',
  '~': 'contains the text',
  ':': 'has, is in',
  in: 'one of several'
};
const OF_KIND: Readonly<Record<Kind | 'any', readonly string[]>> = {
  text: [':', '=', '!=', '~', 'in'],
  number: ['=', '!=', '<', '<=', '>', '>=', 'in'],
  time: ['<', '<=', '>', '>=', '=', '!='],
  yes: [':', '=', '!='],
  state: [':', '=', '!=', 'in'],
  any: ['<', '<=', '>', '>=', '=', '!=', '~', 'in']
};
const MOST = 12;

/** What can stand at the cursor, best first. */
export function suggestions(
  cursor: Cursor,
  names: ExperimentNames | null
): Suggestion[] {
  const found = all(cursor, names);
  const prefix = unquoted(cursor.prefix).toLowerCase();
  const begins = found.filter(({ label }) =>
    label.toLowerCase().startsWith(prefix)
  );
  const contains = found.filter(
    ({ label }) =>
      !label.toLowerCase().startsWith(prefix) &&
      label.toLowerCase().includes(prefix)
  );
  return [...begins, ...contains]
    .filter(({ text }) => text !== cursor.prefix)
    .slice(0, MOST);
}

/** Whether a query ends in the middle of a comparison: a name of something measured, a sign, a joiner. */
export function isUnfinished(
  text: string,
  names: ExperimentNames | null
): boolean {
  const { expects, name, prefix } = cursorAt(text, text.length);
  const isKnown = (word: string) =>
    [...(names?.metrics ?? []), ...(names?.hyperparameters ?? [])].some(
      known => known.name === unquoted(word)
    );
  switch (expects) {
    case 'name':
      return prefix === '' ? text.trim() !== '' : isKnown(prefix);
    case 'operator':
      return isKnown(name) || /[<>=!~:]/.test(prefix);
    case 'value':
      return prefix === '';
    case 'joiner':
      return false;
  }
}

/** The query with a suggestion in its place, and where the cursor is then. */
export function completed(
  text: string,
  { from, to }: Cursor,
  suggestion: Suggestion
): { text: string; cursor: number } {
  const rest = text.slice(to);
  const space = suggestion.text.endsWith('(') || /^\s/.test(rest) ? '' : ' ';
  const begin = text.slice(0, from) + suggestion.text + space;
  return { text: begin + rest, cursor: begin.length };
}

function all(cursor: Cursor, names: ExperimentNames | null): Suggestion[] {
  const field = FIELDS[cursor.name.toLowerCase()];
  switch (cursor.expects) {
    case 'name':
      return allNames(names);
    case 'operator':
      return OF_KIND[field ?? 'any'].map(sign => ({
        label: sign,
        text: sign === 'in' ? 'in (' : sign,
        detail: OPERATORS[sign] ?? ''
      }));
    case 'value':
      return values(cursor.name.toLowerCase(), field, names);
    case 'joiner':
      return [
        { label: 'and', text: 'and', detail: 'both hold' },
        { label: 'or', text: 'or', detail: 'one of them holds' }
      ];
  }
}

function allNames(names: ExperimentNames | null): Suggestion[] {
  const metrics = names?.metrics ?? [];
  const hparams = names?.hyperparameters ?? [];
  const taken = new Set([
    ...Object.keys(FIELDS),
    ...hparams.map(({ name }) => name)
  ]);
  return [
    ...Object.keys(FIELDS).map(name => ({
      label: name,
      text: name,
      detail: 'of the experiment'
    })),
    ...metrics.map(({ name, count }) => ({
      label: name,
      text:
        isPlain(name) && !taken.has(name) ? name : `metric.${nameText(name)}`,
      detail: `metric of ${experiments(count)}`
    })),
    ...hparams.map(({ name, count }) => ({
      label: name,
      text: isPlain(name) && !(name in FIELDS) ? name : hparamText(name),
      detail: `hyperparameter of ${experiments(count)}`
    })),
    { label: 'not', text: 'not', detail: 'the opposite' }
  ];
}

function values(
  name: string,
  kind: Kind | undefined,
  names: ExperimentNames | null
): Suggestion[] {
  const known: Readonly<
    Record<string, ReadonlyArray<{ name: string; count: number }> | undefined>
  > = {
    label: names?.labels,
    project: names?.projects,
    user: names?.users,
    framework: names?.frameworks,
    name: names?.names
  };
  const of = known[name];
  if (of !== undefined) {
    return of.map(({ name: value, count }) => ({
      label: value,
      text: quoted(value),
      detail: experiments(count)
    }));
  }
  const fixed: Readonly<Record<string, readonly string[]>> = {
    state: STATES,
    yes: ['yes', 'no'],
    time:
      name === 'duration'
        ? ['1m', '10m', '1h', '1d']
        : ['1h', '1d', '7d', '30d']
  };
  return (fixed[kind ?? ''] ?? []).map(value => ({
    label: value,
    text: value,
    detail: ''
  }));
}

function experiments(count: number): string {
  return count === 1
    ? '1 experiment'
    : `${count.toLocaleString('en-US')} experiments`;
}

function isPlain(name: string): boolean {
  return (
    /^[A-Za-z_][A-Za-z0-9_/+%@-]*$/.test(name) &&
    !/^(and|or|not|in|contains)$/i.test(name)
  );
}

function nameText(name: string): string {
  return isPlain(name) ? name : inQuotes(name);
}

function hparamText(name: string): string {
  return `hp.${name.split('.').map(nameText).join('.')}`;
}

function unquoted(text: string): string {
  return text.replace(/^(hp|metric)\./, '').replace(/^["']|["']$/g, '');
}

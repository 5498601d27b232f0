/** What is searched for: the query and the quick filters, as the address and the master have them. Pure. */

import type { paths } from '../../generated/rest';
import type { Parameters } from '../app/address';

/** Words that the query language has for states. */
export const STATES = [
  'Queued',
  'Running',
  'Paused',
  'Stopping',
  'Completed',
  'Failed',
  'Stopped'
] as const;

/** Times that can be chosen, and how they are called. */
export const TIMES = [
  { value: '1h', label: 'Last hour' },
  { value: '1d', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' }
] as const;

/** What is searched for. */
export interface Filters {
  /** As it was typed: in the query language, or plain words. */
  readonly query: string;
  readonly states: readonly string[];
  readonly labels: readonly string[];
  readonly project: string;
  readonly since: string;
  readonly archived: boolean;
}

export function readFilters(parameters: Parameters): Filters {
  return {
    query: parameters.query ?? '',
    states: listed(parameters.state),
    labels: listed(parameters.label),
    project: parameters.project ?? '',
    since: parameters.since ?? '',
    archived: parameters.archived === 'yes'
  };
}

/** The parameters of the address that filters are; empty ones stand for nothing. */
export function filterParameters(filters: Filters): Record<string, string> {
  return {
    query: filters.query,
    state: filters.states.map(encodeURIComponent).join(','),
    label: filters.labels.map(encodeURIComponent).join(','),
    project: filters.project,
    since: filters.since,
    archived: filters.archived ? 'yes' : ''
  };
}

export const NO_FILTERS: Filters = {
  query: '',
  states: [],
  labels: [],
  project: '',
  since: '',
  archived: false
};

export function isFiltered(filters: Filters): boolean {
  const { query, states, labels, project, since } = filters;
  return (
    query.trim() + project + since !== '' || states.length + labels.length > 0
  );
}

/** The words of a text that is no query of the language: they are searched for in names. Null for a query. */
export function plainWords(text: string): string[] | null {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const isQuery =
    /[=<>~:"'()]/.test(text) ||
    words.some(word => /^(and|or|not|in|contains)$/i.test(word));
  return isQuery ? null : words;
}

/** A value as it stands in a query: in quotes where it needs some. */
export function quoted(value: string): string {
  const plain =
    /^[A-Za-z0-9_./+%@:-]+$/.test(value) &&
    !/^(and|or|not|in|contains)$/i.test(value);
  return plain ? value : inQuotes(value);
}

export function inQuotes(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** The query of the master for what was typed; empty for everything. */
export function queryOf(text: string): string {
  const words = plainWords(text);
  return words === null ? text.trim() : words.map(wordQuery).join(' and ');
}

function wordQuery(word: string): string {
  const number = /^#?(\d{1,15})$/.exec(word)?.[1];
  const byName = `name ~ ${inQuotes(word)}`;
  return number === undefined ? byName : `(id = ${number} or ${byName})`;
}

type ListQuery = NonNullable<
  paths['/api/v1/experiment-list']['get']['parameters']['query']
>;

/** Parameters of the master's list. */
export function listQuery(filters: Filters): ListQuery {
  const typed = queryOf(filters.query);
  const states = `state in (${filters.states.join(', ')})`;
  const several = filters.states.length > 1;
  const query = !several
    ? typed
    : typed === ''
      ? states
      : `(${typed}) and ${states}`;
  return {
    query: query || undefined,
    state: several ? undefined : filters.states[0],
    label: [...filters.labels],
    project: filters.project || undefined,
    since: filters.since || undefined,
    archived: filters.archived || undefined
  };
}

/** Whether a change of an experiment may change which ones are found, or their order. */
export function isSensitive(filters: Filters, sort: string): boolean {
  return isFiltered(filters) || (sort !== '' && !/^(id|created) /.test(sort));
}

function listed(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .filter(Boolean)
    .map(part => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part; // typed by hand
      }
    });
}

/** What is chosen, each with the filters that are left when it goes. */
export function chips(
  filters: Filters
): ReadonlyArray<{ label: string; without: Filters }> {
  const time = TIMES.find(({ value }) => value === filters.since);
  const { states, labels, project, since } = filters;
  return [
    ...states.map(state => ({
      label: `State: ${state}`,
      without: { ...filters, states: states.filter(each => each !== state) }
    })),
    ...labels.map(label => ({
      label: `Label: ${label}`,
      without: { ...filters, labels: labels.filter(each => each !== label) }
    })),
    ...(project === ''
      ? []
      : [
          {
            label: `Project: ${project}`,
            without: { ...filters, project: '' }
          }
        ]),
    ...(since === ''
      ? []
      : [
          {
            label: time?.label ?? `Created since ${since}`,
            without: { ...filters, since: '' }
          }
        ]),
    ...(filters.archived
      ? [
          {
            label: 'With archived ones',
            without: { ...filters, archived: false }
          }
        ]
      : [])
  ];
}

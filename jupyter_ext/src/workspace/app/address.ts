/** Addresses inside the workspace, such as `/experiments/7/charts?smoothing=0.6`: text to parts and back. Pure. */

import type { ExperimentId } from '../../shared/model';

/** What a page remembers in its address: chosen columns, a query, the state of a chart. */
export type Parameters = Readonly<Record<string, string>>;

/** Tabs of an experiment's page, in their order. */
export const TABS = [
  'overview',
  'trials',
  'charts',
  'search',
  'checkpoints',
  'code',
  'configuration',
  'files',
  'logs',
  'system',
  'notes',
  'report'
] as const;
export type Tab = (typeof TABS)[number];

/** Where the user is. */
export type Place =
  | { readonly page: 'experiments' }
  | {
      readonly page: 'experiment';
      readonly id: ExperimentId;
      readonly tab: Tab;
    }
  | { readonly page: 'compare'; readonly ids: readonly ExperimentId[] }
  | { readonly page: 'models' }
  | { readonly page: 'model'; readonly name: string }
  | { readonly page: 'queue' }
  | { readonly page: 'cluster' }
  | { readonly page: 'unknown' };

/** A place and what its page remembers. */
export interface Address {
  readonly place: Place;
  readonly parameters: Parameters;
}

export const HOME = '/experiments';

/** Read an address; what leads nowhere becomes the place `unknown`. */
export function readAddress(text: string): Address {
  const [path = '', query = ''] = split(text);
  const parameters = Object.fromEntries(new URLSearchParams(query));
  return { place: placeOf(path.split('/').slice(1).map(decoded)), parameters };
}

/** The text of a place, with parameters that are not empty. */
export function addressText(place: Place, parameters: Parameters = {}): string {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== '')
  ).toString();
  return pathOf(place) + (query === '' ? '' : `?${query}`);
}

/** The address of an experiment's page. */
export function experimentAddress(
  id: ExperimentId,
  tab: Tab = 'overview'
): string {
  return addressText({ page: 'experiment', id, tab });
}

function split(text: string): [string, string] {
  const at = text.indexOf('?');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function placeOf(parts: readonly string[]): Place {
  const [page = '', name = '', more = ''] = parts;
  if (parts.length > 3) {
    return { page: 'unknown' };
  }
  switch (page) {
    case '':
      return name === '' ? { page: 'experiments' } : { page: 'unknown' };
    case 'experiments':
      return name === ''
        ? { page: 'experiments' }
        : experimentPlace(name, more);
    case 'compare':
      return more === '' ? comparePlace(name) : { page: 'unknown' };
    case 'models':
      if (more !== '') {
        return { page: 'unknown' };
      }
      return name === '' ? { page: 'models' } : { page: 'model', name };
    case 'queue':
    case 'cluster':
      return name + more === '' ? { page } : { page: 'unknown' };
    default:
      return { page: 'unknown' };
  }
}

function experimentPlace(name: string, tab: string): Place {
  const id = idOf(name);
  const known = TABS.find(each => each === (tab === '' ? 'overview' : tab));
  return id === null || known === undefined
    ? { page: 'unknown' }
    : { page: 'experiment', id, tab: known };
}

function comparePlace(text: string): Place {
  const ids = text.split(',').map(idOf);
  const valid = ids.filter(id => id !== null);
  return valid.length === ids.length && valid.length > 0
    ? { page: 'compare', ids: [...new Set(valid)] }
    : { page: 'unknown' };
}

function idOf(text: string): ExperimentId | null {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null;
}

function pathOf(place: Place): string {
  switch (place.page) {
    case 'experiment': {
      const base = `/experiments/${place.id}`;
      return place.tab === 'overview' ? base : `${base}/${place.tab}`;
    }
    case 'compare':
      return `/compare/${place.ids.join(',')}`;
    case 'model':
      return `/models/${encodeURIComponent(place.name)}`;
    case 'unknown':
      return HOME;
    case 'experiments':
    case 'models':
    case 'queue':
    case 'cluster':
      return `/${place.page}`;
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}

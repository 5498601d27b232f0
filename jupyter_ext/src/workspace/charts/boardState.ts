/** What the address remembers of a board of charts. Pure. */

import type { Parameters } from '../app/address';
import {
  AXES,
  type ChartSettings,
  DEFAULT_SETTINGS,
  type Smoothing,
  type Zoom
} from './series';

export interface BoardState {
  readonly settings: ChartSettings;
  readonly zoom: Zoom;
  /** Keys of charts: on top, in an order of the user's, not shown, over the full width. */
  readonly pinned: readonly string[];
  readonly order: readonly string[];
  readonly hidden: readonly string[];
  readonly wide: readonly string[];
  /** Charts that are drawn as one. */
  readonly merged: ReadonlyArray<readonly string[]>;
  /** Only charts whose name has this. */
  readonly find: string;
  /** The group of series that stands out. */
  readonly line: string;
}

export const NO_STATE: BoardState = {
  settings: DEFAULT_SETTINGS,
  zoom: null,
  pinned: [],
  order: [],
  hidden: [],
  wide: [],
  merged: [],
  find: '',
  line: ''
};

const NAMES = [
  'axis',
  'smooth',
  'log',
  'outliers',
  'y',
  'zoom',
  'pin',
  'order',
  'hide',
  'wide',
  'merge',
  'find',
  'line'
] as const;
type Name = (typeof NAMES)[number];

const MOST_LETTERS = 60;

/** A short key of a chart for the address; names of metrics may have thousands of letters. */
export function chartKey(name: string): string {
  const letters = [...name];
  if (letters.length <= MOST_LETTERS) {
    return name;
  }
  let hash = 7;
  for (const letter of letters) {
    hash = (hash * 31 + letter.codePointAt(0)!) % 0x7fffffff;
  }
  return `${letters.slice(0, MOST_LETTERS).join('')}~${hash.toString(36)}`;
}

/** The state that an address tells; what makes no sense counts for nothing. */
export function readBoard(parameters: Parameters, prefix = ''): BoardState {
  const text = (name: Name) => parameters[prefix + name] ?? '';
  const log = text('log');
  const [minimum, maximum] = text('y').split(':').map(bound);
  const axis = AXES.find(each => each === text('axis'));
  return {
    settings: {
      axis: axis ?? DEFAULT_SETTINGS.axis,
      smoothing: readSmoothing(text('smooth')),
      logX: log.includes('x'),
      logY: log.includes('y'),
      ignoreOutliers: text('outliers') === 'ignore',
      minimum: minimum ?? null,
      maximum: maximum ?? null
    },
    zoom: readZoom(text('zoom')),
    pinned: list(text('pin')),
    order: list(text('order')),
    hidden: list(text('hide')),
    wide: list(text('wide')),
    merged: text('merge')
      .split(';')
      .map(list)
      .filter(keys => keys.length > 1),
    find: text('find'),
    line: text('line')
  };
}

/** The parameters of a state; those that are as usual are empty, and so not in the address. */
export function boardParameters(
  state: BoardState,
  prefix = ''
): Record<string, string> {
  const { settings, zoom } = state;
  const { logX, logY, minimum, maximum } = settings;
  const texts: Record<Name, string> = {
    axis: settings.axis === DEFAULT_SETTINGS.axis ? '' : settings.axis,
    smooth: smoothingText(settings.smoothing),
    log: `${logX ? 'x' : ''}${logY ? 'y' : ''}`,
    outliers: settings.ignoreOutliers ? 'ignore' : '',
    y:
      minimum === null && maximum === null
        ? ''
        : `${minimum ?? ''}:${maximum ?? ''}`,
    zoom: zoom === null ? '' : zoom.map(short).join(':'),
    pin: joined(state.pinned),
    order: joined(state.order),
    hide: joined(state.hidden),
    wide: joined(state.wide),
    merge: state.merged.map(joined).join(';'),
    find: state.find,
    line: state.line
  };
  return Object.fromEntries(NAMES.map(name => [prefix + name, texts[name]]));
}

export function smoothingText(smoothing: Smoothing): string {
  switch (smoothing.kind) {
    case 'none':
      return '';
    case 'ema':
      return `ema:${smoothing.weight}`;
    case 'window':
      return `window:${smoothing.points}`;
  }
}

export const LARGEST_WEIGHT = 0.999;
export const LARGEST_WINDOW = 501;

function readSmoothing(text: string): Smoothing {
  const [kind, amount = ''] = text.split(':');
  const value = Number(amount);
  if (
    kind === 'ema' &&
    amount !== '' &&
    value >= 0 &&
    value <= LARGEST_WEIGHT
  ) {
    return { kind: 'ema', weight: value };
  }
  if (kind === 'window' && value >= 1 && value <= LARGEST_WINDOW) {
    return { kind: 'window', points: Math.round(value) };
  }
  return { kind: 'none' };
}

function readZoom(text: string): Zoom {
  const ends = text.split(':').map(bound);
  const [from, to] = ends;
  return ends.length === 2 &&
    typeof from === 'number' &&
    typeof to === 'number' &&
    from < to
    ? [from, to]
    : null;
}

/** A number that somebody has typed; null where it is none. */
export function bound(text: string): number | null {
  const value = Number(text);
  return text.trim() === '' || !Number.isFinite(value) ? null : value;
}

function short(value: number): string {
  return String(Number(value.toPrecision(13)));
}

function list(text: string): string[] {
  return text.split(',').filter(Boolean).map(decoded);
}

function joined(keys: readonly string[]): string {
  return keys
    .map(key => key.replace(/[%,;]/g, letter => encodeURIComponent(letter)))
    .join(',');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
}

/** Where values stand on an axis: numbers, powers, and what is no number. Pure. */

import {
  linearTicks,
  logarithmicTicks,
  powers,
  tickText
} from '../../shared/axes';
import { formatValue } from '../../shared/format';
import { type Brush, textOf } from './trials';

export interface PlaceTick {
  /** From 0 to 1. */
  readonly place: number;
  readonly text: string;
}

export interface Scale {
  readonly kind: 'linear' | 'log' | 'category';
  readonly ticks: readonly PlaceTick[];
  /** Null for what has no place: missing, not a number, infinite. */
  place(value: unknown): number | null;
  /** Value at a place, for words and filters. */
  at(place: number): number | string;
  /** The filter that a stretch of the axis means. */
  brush(from: number, to: number): Brush;
  /** The stretch of a filter. */
  stretch(brush: Brush): readonly [number, number];
  /** How far an arrow key moves an end of a filter. */
  readonly step: number;
}

/** Room beyond the outermost values. */
const ROOM = 0.04;

/** The axis of some values. Numbers with other things among them are categories; `log` holds for positive ones. */
export function scaleOf(values: readonly unknown[], log = false): Scale {
  const present = values.filter(value => value !== undefined && value !== null);
  const numeric = present.every(value => typeof value === 'number');
  const finite = present.filter(
    (value): value is number =>
      typeof value === 'number' && Number.isFinite(value)
  );
  if (!numeric) {
    return categories(values);
  }
  let low = Infinity;
  let high = -Infinity;
  for (const value of finite) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) {
    [low, high] = [0, 1];
  }
  return log && low > 0 ? logarithmic(low, high) : linear(low, high);
}

function linear(low: number, high: number): Scale {
  const room = low === high ? Math.abs(low) / 10 || 1 : (high - low) * ROOM;
  const [from, to] = Number.isFinite(room) // else the ends are the largest numbers there are
    ? [low - room, high + room]
    : [low, high];
  const place = (value: number) => (value / 2 - from / 2) / (to / 2 - from / 2);
  const ticks = low === high ? [low] : linearTicks(from, to);
  const step = (ticks[1] ?? 0) - (ticks[0] ?? 0);
  return numbers(
    'linear',
    place,
    at => from * (1 - at) + to * at,
    ticks.map(value => ({
      place: place(value),
      text: tickText(clean(value), step)
    }))
  );
}

function logarithmic(low: number, high: number): Scale {
  const [first, last] = [Math.log10(low), Math.log10(high)];
  const room = first === last ? 0.5 : (last - first) * ROOM;
  const [from, span] = [first - room, last - first + 2 * room];
  const place = (value: number) => (Math.log10(value) - from) / span;
  const all = logarithmicTicks(10 ** from, 10 ** (from + span));
  const wide = last - first > 0.7;
  // Less than a decade has no power of ten to be named by.
  const shown = wide ? powersOf(all) : all;
  const ticks = shown.length > 0 ? shown : [low];
  return numbers(
    'log',
    place,
    at => 10 ** (from + at * span),
    ticks.map(value => ({
      place: place(value),
      text: tickText(value)
    }))
  );
}

function powersOf(ticks: readonly number[]): number[] {
  const tens = ticks.filter(
    tick => Math.abs(Math.log10(tick) - Math.round(Math.log10(tick))) < 1e-9
  );
  return tens.length > 1
    ? powers(tens).filter(tick => tick !== null)
    : ticks.filter(tick => /^[125]/.test(tick.toExponential()));
}

function numbers(
  kind: 'linear' | 'log',
  place: (value: number) => number,
  at: (place: number) => number,
  ticks: readonly PlaceTick[]
): Scale {
  return {
    kind,
    ticks,
    place: value => {
      if (typeof value !== 'number' || !Number.isFinite(value)) {
        return null;
      }
      const found = place(value);
      return Number.isFinite(found) ? found : null;
    },
    at,
    brush: (from, to) => [rounded(at(from)), rounded(at(to))],
    stretch: brush =>
      typeof brush[0] === 'number'
        ? [bounded(place(brush[0])), bounded(place(brush[1] as number))]
        : [0, 1],
    step: 0.02
  };
}

function categories(values: readonly unknown[]): Scale {
  const order = new Map<string, unknown>();
  for (const value of values) {
    const text = textOf(value);
    if (!order.has(text)) {
      order.set(text, value);
    }
  }
  const texts = [...order]
    .sort(([one, first], [other, second]) => compare(first, second, one, other))
    .map(([text]) => text);
  const places = new Map(texts.map((text, at) => [text, at]));
  const count = Math.max(texts.length, 1);
  const middle = (at: number) => (at + 0.5) / count;
  const indexAt = (place: number) =>
    Math.min(count - 1, Math.max(0, Math.floor(place * count)));
  return {
    kind: 'category',
    ticks: texts.map((text, at) => ({ place: middle(at), text })),
    place: value => {
      const at = places.get(textOf(value));
      return at === undefined ? null : middle(at);
    },
    at: place => texts[indexAt(place)] ?? '',
    brush: (from, to) => {
      const inside = texts.filter(
        (_, at) => middle(at) >= from && middle(at) <= to
      );
      return inside.length > 0
        ? inside
        : [texts[indexAt((from + to) / 2)] ?? ''];
    },
    stretch: brush => {
      const at = brush.flatMap(text => places.get(String(text)) ?? []);
      return at.length === 0
        ? [0, 1]
        : [Math.min(...at) / count, (Math.max(...at) + 1) / count];
    },
    step: 1 / count
  };
}

/** Numbers by size, then the rest by its text. */
function compare(
  one: unknown,
  other: unknown,
  text: string,
  second: string
): number {
  const [first, last] = [one, other].map(each =>
    typeof each === 'number' && !Number.isNaN(each) ? each : Infinity
  ) as [number, number];
  return first === last ? (text < second ? -1 : 1) : first < last ? -1 : 1;
}

function bounded(place: number): number {
  return Number.isFinite(place) ? Math.min(1, Math.max(0, place)) : 0;
}

/** Four digits are as exact as anybody drags. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** Without what binary fractions leave: 0.30000000000000004. */
function clean(value: number): number {
  return Number(value.toPrecision(12));
}

/** The words of a place on an axis. */
export function placeWords(scale: Scale, place: number): string {
  return formatValue(scale.at(place));
}

/** Numbers and lines on the axes of a chart, on the screen and in exported pictures. Pure. */

import {
  linearTicks,
  logarithmicTicks,
  powers,
  tickText
} from '../../shared/axes';
import { formatDuration } from '../../shared/format';
import type { Axis } from './series';

export interface Tick {
  readonly at: number;
  readonly text: string;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Steps of time that people count in, in seconds. */
const TIME_STEPS = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map(minutes => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map(hours => hours * HOUR),
  ...[1, 2, 7, 14, 28, 56, 112, 364].map(days => days * DAY)
];

/** Ticks of an x axis from one end to the other; `room` is how many have room. */
export function xTicks(
  axis: Axis,
  [from, to]: readonly [number, number],
  room: number,
  logarithmic = false
): Tick[] {
  if (!(to > from)) {
    return [{ at: from, text: xText(axis, from) }];
  }
  if (logarithmic) {
    return logTicks(from, to, room, at => xText(axis, at));
  }
  if (axis === 'time' || axis === 'relative') {
    return timeTicks(axis, from, to, room);
  }
  const whole = axis !== 'epoch';
  const step = stepFor((to - from) / Math.max(room, 1), whole ? 1 : 0);
  return steps(from, to, step, 0).map(at => ({
    at,
    text: tickText(at, step)
  }));
}

/** Ticks of the y axis. */
export function yTicks(
  [from, to]: readonly [number, number],
  logarithmic: boolean,
  format?: (value: number) => string
): Tick[] {
  if (logarithmic) {
    return logTicks(from, to, 8, format ?? (at => tickText(at)));
  }
  const found = linearTicks(from, to);
  const [first = 0, second = first] = found;
  const ticks = found.map(at => ({
    at,
    text: format?.(at) ?? tickText(at, second - first)
  }));
  // A format may round more than the steps are apart.
  return ticks.filter(({ text }, at) => text !== ticks[at - 1]?.text);
}

/** A place on an x axis in words: `1,200`, `1:02:03`, `14:03:27`. */
export function xText(axis: Axis, at: number): string {
  switch (axis) {
    case 'batch':
    case 'samples':
      return Math.round(at).toLocaleString('en');
    case 'epoch':
      return Number(at.toPrecision(5)).toLocaleString('en');
    case 'relative':
      return at < 60
        ? `${Number(at.toPrecision(at < 1 ? 2 : 3))} s`
        : formatDuration(at);
    case 'time':
      return clock(at, true);
  }
}

/** The name under the x axis, with the unit. */
export function xTitle(
  axis: Axis,
  range: readonly [number, number] | null
): string {
  switch (axis) {
    case 'batch':
      return 'batch';
    case 'epoch':
      return 'epoch';
    case 'samples':
      return 'samples';
    case 'relative':
      return 'time since the start';
    case 'time':
      return range === null
        ? 'time'
        : `time, ${new Date(range[0] * 1000).toLocaleDateString('en-CA')}`;
  }
}

function logTicks(
  from: number,
  to: number,
  room: number,
  format: (value: number) => string
): Tick[] {
  const all = logarithmicTicks(from, to);
  const kept = powers(all).flatMap(at => at ?? []);
  const every = kept.length > room * 2 ? Math.ceil(kept.length / room) : 1;
  const dense = every > 1 ? kept.filter(isPower) : kept;
  const named = dense.length > 1 ? dense : kept;
  if (named.length < 2) {
    // Between two of them, say 3.2 and 3.9, there may be none.
    return steps(from, to, stepFor((to - from) / 4, 0), 0).map(at => ({
      at,
      text: format(at)
    }));
  }
  const skip = Math.ceil(named.length / Math.max(room, 2));
  return named.map((at, index) => ({
    at,
    text: index % skip === 0 ? format(at) : ''
  }));
}

function isPower(value: number): boolean {
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-6;
}

function timeTicks(
  axis: 'time' | 'relative',
  from: number,
  to: number,
  room: number
): Tick[] {
  const least = (to - from) / Math.max(room, 1);
  const step =
    TIME_STEPS.find(each => each >= least) ?? Math.ceil(least / DAY) * DAY;
  const shift =
    axis === 'time' ? new Date(from * 1000).getTimezoneOffset() * MINUTE : 0;
  return steps(from, to, step, shift).map(at => ({
    at,
    text:
      axis === 'relative'
        ? relativeText(at, step)
        : step >= DAY
          ? dayText(at)
          : clock(at, step < MINUTE)
  }));
}

function relativeText(seconds: number, step: number): string {
  if (seconds === 0) {
    return '0';
  }
  if (step >= DAY) {
    return `${Math.round(seconds / DAY)} d`;
  }
  if (step >= HOUR) {
    return `${Math.round(seconds / HOUR)} h`;
  }
  if (step >= MINUTE) {
    return seconds < HOUR
      ? `${Math.round(seconds / MINUTE)} min`
      : formatDuration(seconds).replace(/(?::00)?:00$/, ' h');
  }
  return seconds < MINUTE
    ? `${Number(seconds.toPrecision(6))} s`
    : formatDuration(seconds);
}

function dayText(at: number): string {
  return new Date(at * 1000).toLocaleDateString('en', {
    month: 'short',
    day: 'numeric'
  });
}

function clock(at: number, seconds: boolean): string {
  const date = new Date(at * 1000);
  const two = (part: number) => String(part).padStart(2, '0');
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return seconds ? `${text}:${two(date.getSeconds())}` : text;
}

/** 1, 2 or 5 times a power of ten. */
function stepFor(least: number, smallest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-300)));
  const step = [1, 2, 5, 10].find(each => each * power >= least) ?? 10;
  return Math.max(step * power, smallest);
}

function steps(
  from: number,
  to: number,
  step: number,
  shift: number
): number[] {
  const first = Math.ceil((from - shift) / step - 1e-9);
  const last = Math.floor((to - shift) / step + 1e-9);
  // Not `first * step` with a step of 0.1 as it is: 3 * 0.1 is not 0.3.
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) =>
    Number(((first + index) * step + shift).toPrecision(14))
  );
}

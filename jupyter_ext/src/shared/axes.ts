/** Numbers and lines on the axes of charts. Pure. */

import type uPlot from 'uplot';

const USUAL_DIGITS = 4;
/** Over more decades than the first, a logarithmic grid has powers of ten only, and at most so many as the second. */
const DENSE_DECADES = 3;
const MOST_POWERS = 16;
/** More than any metric has that is kept in single precision. */
const MOST_DIGITS = 10;

/** There is room for the numbers of about so many steps. */
const MOST_STEPS = 4;
/** Share of a step by which a tick at the very end may seem to be beyond it. */
const ROUNDING = 1e-9;

/** Digits times powers of ten, ascending. */
function multiples(digits: number[], power: number, powers: number): number[] {
  return Array.from({ length: powers }, (_, more) =>
    digits.map(digit => Number(`${digit}e${power + more}`))
  ).flat();
}

/** Batches are counted: there is none between 1 and 2. */
export const WHOLE_STEPS = multiples([1, 2, 5], 0, 10);

/** Ends of the axis of batches: around a single one there is room for its neighbours. */
export function batchRange(
  batches: ArrayLike<number>,
  min: number,
  max: number
): [number, number] {
  const [only = min] = Array.from(batches);
  return batches.length === 1 ? [only - 1, only + 1] : [min, max];
}

/** Ends of an axis of values; null where they are not all the same, for which uPlot has its own. */
export function flatRange(
  min: number,
  max: number,
  logarithmic: boolean
): [number, number] | null {
  if (min !== max) {
    return null;
  }
  const room = Math.abs(min) / 10 || 1;
  return logarithmic ? [min / 2, min * 2] : [min - room, min + room];
}

/** Ticks of a linear axis of metrics, of whatever size: those of uPlot end at 1e32, and at 17 digits. */
export function linearTicks(min: number, max: number): number[] {
  const least = max / MOST_STEPS - min / MOST_STEPS;
  const step =
    multiples([1, 2, 2.5, 5], Math.floor(Math.log10(least)), 2).find(
      each => each >= least
    ) ?? NaN;
  const first = Math.ceil(min / step - ROUNDING);
  const length = Math.floor(max / step + ROUNDING) - first + 1;
  return Array.from({ length }, (_, at) => (first + at) * step);
}

/** Ticks of a logarithmic axis: 1, 2, ... 9 times each power of ten. */
export function logarithmicTicks(min: number, max: number): number[] {
  const power = Math.floor(Math.log10(min));
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  return multiples(digits, power, Math.log10(max) - power + 2).filter(
    tick => tick >= min && tick <= max
  );
}

/** The ticks of a logarithmic axis that get a line; null in the place of the others. */
export function powers(ticks: readonly number[]): Array<number | null> {
  const decades = Math.log10(ticks.at(-1) ?? 1) - Math.log10(ticks[0] ?? 1);
  const step = Math.ceil(decades / MOST_POWERS);
  return ticks.map(tick => {
    const power = Math.log10(tick);
    const whole = Math.round(power);
    const isPower = Math.abs(power - whole) < 1e-6 && whole % step === 0;
    return decades <= DENSE_DECADES || isPower ? tick : null;
  });
}

/** A number on an axis: 15000 -> 15k. Neighbours that are a `step` apart differ in their texts, if that is told. */
export function tickText(value: number | null, step = 0): string {
  if (value === null) {
    return '';
  }
  const size = Math.abs(value);
  const digits = step > 0 && size > 0 ? digitsFor(size, step) : USUAL_DIGITS;
  if (size >= 1e9 || (size > 0 && size < 1e-3)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split('e');
    return `${Number(mantissa)}e${exponent}`;
  }
  const trimmed = (amount: number) =>
    String(Number(amount.toPrecision(digits)));
  if (size >= 1e6) {
    return `${trimmed(value / 1e6)}M`;
  }
  return size >= 1e4 ? `${trimmed(value / 1e3)}k` : trimmed(value);
}

/** Digits that tell a number from its neighbours; steps are 1, 2, 2.5 or 5 times a power of ten. */
function digitsFor(size: number, step: number): number {
  const places = Math.floor(Math.log10(size)) - Math.floor(Math.log10(step));
  return Math.min(Math.max(places + 2, 1), MOST_DIGITS);
}

/** Room for the numbers beside an axis, in pixels. */
export function axisWidth(_: uPlot, values: string[] | null): number {
  const longest = Math.max(0, ...(values ?? []).map(value => value.length));
  return Math.max(30, 10 + longest * 6.4);
}

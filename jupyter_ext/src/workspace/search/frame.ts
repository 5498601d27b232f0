/** Axes of a plot with two dimensions: lines, numbers, names, and a bar of colours. Pure. */

import type { PictureColours } from '../charts/exportSvg';
import type { PlaceTick, Scale } from './scales';
import { clipped, type Shape, type Size } from './shapes';

export interface PlotColours extends PictureColours {
  /** Whether the surface is dark. */
  readonly dark: boolean;
}

export interface Area {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  x(place: number): number;
  y(place: number): number;
}

const LETTER = 6.2;
const LONGEST_TICK = 14;
const LINE = 14;
export const BAR_WIDTH = 74;

/** Where a plot stands in its box: beside the numbers of its axes. */
export function areaOf({ width, height }: Size, up: Scale, bar = false): Area {
  const longest = Math.max(
    3,
    ...up.ticks.map(({ text }) => Math.min(text.length, LONGEST_TICK))
  );
  const area = {
    left: Math.min(28 + longest * LETTER, width * 0.4),
    right: width - 12 - (bar ? BAR_WIDTH : 0),
    top: 8,
    bottom: height - 38
  };
  return {
    ...area,
    x: place => area.left + place * (area.right - area.left),
    y: place => area.bottom - place * (area.bottom - area.top)
  };
}

/** Grid, numbers and names. */
export function frameShapes(
  area: Area,
  across: Scale,
  up: Scale,
  names: { x: string; y: string },
  colours: PlotColours
): Shape[] {
  const { left, right, top, bottom } = area;
  const shapes: Shape[] = [];
  const grid = (points: number[]): void => {
    shapes.push({ kind: 'line', points, stroke: colours.grid, width: 1 });
  };
  const vertical = thinned(up.ticks, bottom - top, () => LINE);
  for (const { place } of vertical) {
    grid([left, area.y(place), right, area.y(place)]);
  }
  const room = (right - left) / Math.max(across.ticks.length, 1);
  const letters = Math.max(
    4,
    Math.min(LONGEST_TICK, Math.floor(room / LETTER))
  );
  const horizontal = thinned(
    across.ticks,
    right - left,
    ({ text }) => (Math.min(text.length, letters) + 2) * LETTER
  );
  for (const { place } of horizontal) {
    grid([area.x(place), top, area.x(place), bottom]);
  }
  shapes.push({
    kind: 'line',
    points: [left, top, left, bottom, right, bottom],
    stroke: colours.other,
    width: 1
  });
  for (const { place, text } of vertical) {
    shapes.push({
      kind: 'text',
      x: left - 6,
      y: area.y(place) + 4,
      text: clipped(text, LONGEST_TICK),
      fill: colours.text,
      anchor: 'end'
    });
  }
  for (const { place, text } of horizontal) {
    shapes.push({
      kind: 'text',
      x: area.x(place),
      y: bottom + 15,
      text: clipped(text, letters),
      fill: colours.text,
      anchor: 'middle'
    });
  }
  const fits = (length: number) => Math.max(6, Math.floor(length / LETTER));
  shapes.push(
    {
      kind: 'text',
      x: (left + right) / 2,
      y: bottom + 32,
      text: clipped(names.x, fits(right - left)),
      fill: colours.strong,
      anchor: 'middle'
    },
    {
      kind: 'text',
      x: 12,
      y: (top + bottom) / 2,
      text: clipped(names.y, fits(bottom - top)),
      fill: colours.strong,
      anchor: 'middle',
      rotated: true
    }
  );
  return shapes;
}

/** As many ticks as have room: each `size` says what it takes. */
export function thinned(
  ticks: readonly PlaceTick[],
  length: number,
  size: (tick: PlaceTick) => number
): PlaceTick[] {
  const needed = ticks.reduce((most, tick) => Math.max(most, size(tick)), 1);
  const step = Math.max(
    1,
    Math.ceil((ticks.length * needed) / Math.max(length, 1))
  );
  return ticks.filter((_, at) => at % step === 0);
}

/** From worse to better, ever darker (on dark: brighter): told apart without colours, too. */
const LIGHT = ['#d9a441', '#93a55c', '#35938a', '#2a5f9e', '#2b2a6f'];
const DARK = ['#6b4a8f', '#4f74c4', '#3fa7a0', '#9fcf5f', '#f4e04d'];
const STEPS = 32;
const ramps = new Map<boolean, string[]>();

/** Colour of a place from 0 to 1, of few different ones: paths of the same colour are drawn at once. */
export function rampColour(place: number, dark: boolean): string {
  let ramp = ramps.get(dark);
  if (ramp === undefined) {
    const stops = dark ? DARK : LIGHT;
    ramp = Array.from({ length: STEPS }, (_, at) =>
      between(stops, at / (STEPS - 1))
    );
    ramps.set(dark, ramp);
  }
  const at = Math.round(Math.min(1, Math.max(0, place)) * (STEPS - 1));
  return ramp[at]!;
}

function between(stops: readonly string[], place: number): string {
  const at = Math.min(stops.length - 2, Math.floor(place * (stops.length - 1)));
  const share = place * (stops.length - 1) - at;
  const parts = [1, 3, 5].map(offset => {
    const [one, other] = [stops[at]!, stops[at + 1]!].map(stop =>
      parseInt(stop.slice(offset, offset + 2), 16)
    ) as [number, number];
    return Math.round(one + (other - one) * share)
      .toString(16)
      .padStart(2, '0');
  });
  return `#${parts.join('')}`;
}

/** A bar that says which colour means what. */
export function barShapes(
  scale: Scale,
  name: string,
  reversed: boolean,
  { width, height }: Size,
  colours: PlotColours
): Shape[] {
  const [left, top, bottom] = [width - BAR_WIDTH + 14, 24, height - 40];
  const step = (bottom - top) / STEPS;
  const bars = Array.from({ length: STEPS }, (_, at): Shape => {
    const place = at / (STEPS - 1);
    return {
      kind: 'rect',
      x: left,
      y: bottom - (at + 1) * step,
      width: 10,
      height: step + 0.5,
      fill: rampColour(reversed ? 1 - place : place, colours.dark)
    };
  });
  const y = (place: number) => bottom - place * (bottom - top);
  return [
    ...bars,
    {
      kind: 'text',
      x: width - 4,
      y: 14,
      text: clipped(name, 11),
      fill: colours.strong,
      anchor: 'end'
    },
    ...thinned(scale.ticks, bottom - top, () => LINE).map(
      ({ place, text }): Shape => ({
        kind: 'text',
        x: left + 14,
        y: y(place) + 4,
        text: clipped(text, 7),
        fill: colours.text
      })
    )
  ];
}

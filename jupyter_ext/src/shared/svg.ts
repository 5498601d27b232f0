/** Small figures as SVG; colours are those of the page's style. */

import { make } from './dom';
import type { SearchAxis } from './searchFacts';

const NAMESPACE = 'http://www.w3.org/2000/svg';

/** The size of a figure, and the room around its plot. */
export interface Box {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

type Attributes = Readonly<Record<string, string | number>>;

function element<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(
      name,
      typeof value === 'number' ? String(Number(value.toFixed(1))) : value
    );
  }
  return made;
}

/** A picture of shapes; `description` says in words what it shows. */
export function svgImage(
  description: string,
  { width, height }: Box,
  parts: readonly Element[]
): SVGElement {
  const svg = element('svg', {
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': description
  });
  svg.append(...parts);
  return svg;
}

/** A figure with a title; `description` says in words what it shows. */
export function figure(
  title: string,
  description: string,
  box: Box,
  parts: readonly Element[]
): HTMLElement {
  const svg = svgImage(description, box, parts);
  return make(
    'figure',
    'det-search-panel',
    { 'aria-label': title },
    make('figcaption', 'det-chart-title', {}, title),
    svg
  );
}

export function line(x1: number, y1: number, x2: number, y2: number): Element {
  return element('line', { x1, y1, x2, y2, class: 'det-search-axis' });
}

export function label(
  x: number,
  y: number,
  text: string,
  anchor: 'start' | 'middle' | 'end',
  name = ''
): Element {
  const made = element('text', { x, y, 'text-anchor': anchor, class: name });
  made.textContent = text.length > 14 ? `${text.slice(0, 13)}…` : text;
  return made;
}

/** The place of a trial. */
export function dot(
  x: number,
  y: number,
  trialId: number,
  best = false
): Element {
  return element('circle', {
    cx: x,
    cy: y,
    r: best ? 5 : 3,
    class: best ? 'det-search-dot det-best' : 'det-search-dot',
    'data-trial': String(trialId)
  });
}

export function shape(
  corners: ReadonlyArray<readonly [number, number]>,
  name: string
): SVGPathElement {
  const steps = corners.map(
    ([x, y], index) => `${index ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`
  );
  return element('path', { d: steps.join(''), class: name });
}

/** Where values stand in a box, and the lines and numbers beside them. */
export function plotArea(
  { width, height, left, right, top, bottom }: Box,
  across: SearchAxis,
  up: SearchAxis
) {
  const x = (place: number) => left + place * (width - left - right);
  const y = (place: number) =>
    height - bottom - place * (height - top - bottom);
  const frame = [
    line(left - 6, height - bottom + 6, width - right, height - bottom + 6),
    line(left - 6, top, left - 6, height - bottom + 6),
    ...across.labels.map(({ place, text }) =>
      label(
        x(place),
        height - 3,
        text,
        place > 0.9 ? 'end' : place < 0.1 ? 'start' : 'middle'
      )
    ),
    ...up.labels.map(({ place, text }) =>
      label(left - 9, y(place) + 4, text, 'end')
    )
  ];
  return { x, y, frame };
}

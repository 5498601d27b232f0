/** A chart as an SVG file: vectors, with title, axes and legend. Pure. */

import type { Palette } from '../../shared/palette';
import { axisLabel, colourOf } from './looks';
import { type Drawn, prepare, xRange, yRange } from './prepare';
import {
  type CurveChartProps,
  usedAxis,
  type Value,
  type Zoom
} from './series';
import { type Tick, xTicks, xTitle, yTicks } from './ticks';

/** What the colours of a picture are. */
export interface PictureColours extends Palette {
  readonly surface: string;
  /** Of the title. */
  readonly strong: string;
}

export interface PictureSize {
  readonly width: number;
  /** Of the plot alone. */
  readonly height: number;
}

const TITLE = 30;
const BOTTOM = 44;
const RIGHT = 20;
const LEGEND_LINE = 18;
const LETTER = 6.4;
const MOST_NAMES = 60;
const LONGEST_NAME = 60;
const FONT =
  'system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif';

interface Frame {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

/** The picture of a chart, and how large it is. */
export function toSvg(
  chart: CurveChartProps,
  zoom: Zoom,
  colours: PictureColours,
  { width, height }: PictureSize
): { text: string; width: number; height: number } {
  const { series, settings } = chart;
  const axis = usedAxis(series, settings.axis);
  const drawn = prepare(series, axis, settings);
  const ends = xRange(drawn, zoom, settings.logX);
  const range = yRange(drawn, ends, settings, chart.least);
  const vertical = yTicks(range, settings.logY, chart.format);
  const left =
    34 + LETTER * Math.max(2, ...vertical.map(({ text }) => text.length));
  const frame: Frame = {
    left,
    top: TITLE,
    right: width - RIGHT,
    bottom: TITLE + height,
    x: scale(ends, left, width - RIGHT, settings.logX),
    y: scale(range, TITLE + height, TITLE, settings.logY)
  };
  const room = Math.max(2, Math.floor((width - left) / 80));
  const horizontal = xTicks(axis, ends, room, settings.logX);
  const legend = legendOf(drawn, colours, width, frame.bottom + BOTTOM);
  const total = frame.bottom + BOTTOM + legend.height;
  const parts = [
    `<rect width="${width}" height="${total}" fill="${colours.surface}"/>`,
    text(
      left,
      19,
      clipped(chart.title, 90),
      `font-size="14" font-weight="600" fill="${colours.strong}"`
    ),
    ...grid(frame, horizontal, vertical, colours),
    text(
      (left + frame.right) / 2,
      frame.bottom + 34,
      xTitle(axis, ends),
      `text-anchor="middle" fill="${colours.text}"`
    ),
    `<text transform="translate(13 ${(frame.top + frame.bottom) / 2}) rotate(-90)" text-anchor="middle" fill="${colours.text}">${escaped(axisLabel(chart.unit ?? chart.title))}</text>`,
    `<clipPath id="plot"><rect x="${rounded(left)}" y="${frame.top}" width="${rounded(frame.right - left)}" height="${height}"/></clipPath>`,
    '<g clip-path="url(#plot)" fill="none" stroke-linejoin="round">',
    ...drawn.flatMap(each => bandOf(each, frame, colours)),
    ...drawn.flatMap(each => lines(each, frame, colours)),
    '</g>',
    ...drawn.flatMap(each => beyond(each, frame, ends, colours)),
    ...legend.parts
  ];
  return {
    width,
    height: total,
    text: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${total}" viewBox="0 0 ${width} ${total}" font-family="${FONT}" font-size="11">\n<title>${escaped(clipped(chart.title, 200))}</title>\n${parts.join('\n')}\n</svg>\n`
  };
}

function grid(
  { left, right, top, bottom, x, y }: Frame,
  horizontal: readonly Tick[],
  vertical: readonly Tick[],
  { grid: stroke, text: fill }: PictureColours
): string[] {
  return [
    ...horizontal.map(
      ({ at }) =>
        `<line x1="${rounded(x(at))}" x2="${rounded(x(at))}" y1="${top}" y2="${bottom}" stroke="${stroke}"/>`
    ),
    ...vertical.map(
      ({ at }) =>
        `<line x1="${rounded(left)}" x2="${right}" y1="${rounded(y(at))}" y2="${rounded(y(at))}" stroke="${stroke}"/>`
    ),
    ...horizontal.map(tick =>
      text(
        x(tick.at),
        bottom + 16,
        tick.text,
        `text-anchor="middle" fill="${fill}"`
      )
    ),
    ...vertical.map(tick =>
      text(
        left - 6,
        y(tick.at) + 4,
        tick.text,
        `text-anchor="end" fill="${fill}"`
      )
    )
  ];
}

function lines(drawn: Drawn, frame: Frame, colours: PictureColours): string[] {
  const { look, x, y, raw } = drawn;
  const stroke = colourOf(look.colour, colours);
  const dash = look.dash ? ` stroke-dasharray="${look.dash.join(' ')}"` : '';
  const behind = raw
    ? [
        `<path d="${path(x, raw, frame)}" stroke="${stroke}" stroke-width="1" opacity="0.28"/>`
      ]
    : [];
  return [
    ...behind,
    `<path d="${path(x, y, frame)}" stroke="${stroke}" stroke-width="${look.width}" opacity="${look.alpha}"${dash}/>`,
    ...alone(x, y).map(
      ([at, value]) =>
        `<circle cx="${rounded(frame.x(at))}" cy="${rounded(frame.y(value))}" r="2.5" fill="${stroke}" opacity="${look.alpha}"/>`
    )
  ];
}

function bandOf(
  { look, x, band }: Drawn,
  frame: Frame,
  colours: PictureColours
): string[] {
  if (band === null) {
    return [];
  }
  const found: string[] = [];
  let stretch: number[] = [];
  const close = () => {
    if (stretch.length > 1) {
      const edge = (at: number, values: readonly Value[]) =>
        `${rounded(frame.x(x[at]!))} ${rounded(frame.y(values[at]!))}`;
      const up = stretch.map(at => edge(at, band.maximum));
      const down = stretch.toReversed().map(at => edge(at, band.minimum));
      found.push(`M${[...up, ...down].join('L')}Z`);
    }
    stretch = [];
  };
  x.forEach((_, at) => {
    const [low, high] = [band.minimum[at], band.maximum[at]];
    if (typeof low === 'number' && typeof high === 'number') {
      stretch.push(at);
    } else {
      close();
    }
  });
  close();
  return found.length > 0
    ? [
        `<path d="${found.join('')}" fill="${colourOf(look.colour, colours)}" opacity="0.18"/>`
      ]
    : [];
}

function beyond(
  { infinities, look }: Drawn,
  { x, top, bottom }: Frame,
  [from, to]: readonly [number, number],
  colours: PictureColours
): string[] {
  return infinities
    .filter(({ x: at }) => at >= from && at <= to)
    .map(({ x: at, positive }) => {
      const [tip, base] = positive ? [top, top + 8] : [bottom, bottom - 8];
      const left = x(at);
      return `<path d="M${rounded(left)} ${tip}L${rounded(left - 5)} ${base}L${rounded(left + 5)} ${base}Z" fill="${colourOf(look.colour, colours)}"/>`;
    });
}

function legendOf(
  drawn: readonly Drawn[],
  colours: PictureColours,
  width: number,
  top: number
): { parts: string[]; height: number } {
  const parts: string[] = [];
  let [left, line] = [12, 0];
  const add = (name: string, swatch: string) => {
    const wide = 30 + name.length * LETTER;
    if (left > 12 && left + wide > width) {
      [left, line] = [12, line + 1];
    }
    const y = top + line * LEGEND_LINE;
    parts.push(
      `<g transform="translate(${rounded(left)} ${y})">${swatch}${text(swatch ? 24 : 0, 4, name, `fill="${colours.text}"`)}</g>`
    );
    left += wide + 14;
  };
  for (const { series, look } of drawn.slice(0, MOST_NAMES)) {
    const dash = look.dash ? ` stroke-dasharray="${look.dash.join(' ')}"` : '';
    add(
      clipped(
        series.detail ? `${series.label} (${series.detail})` : series.label,
        LONGEST_NAME
      ),
      `<line x1="0" x2="18" y1="0" y2="0" stroke="${colourOf(look.colour, colours)}" stroke-width="${look.width}" opacity="${look.alpha}"${dash}/>`
    );
  }
  if (drawn.length > MOST_NAMES) {
    add(`and ${drawn.length - MOST_NAMES} more`, '');
  }
  return { parts, height: drawn.length > 0 ? (line + 1) * LEGEND_LINE : 0 };
}

function path(
  x: readonly number[],
  values: readonly Value[],
  frame: Frame
): string {
  let pen = 'M';
  let found = '';
  x.forEach((at, index) => {
    const value = values[index];
    if (typeof value === 'number') {
      found += `${pen}${rounded(frame.x(at))} ${rounded(frame.y(value))}`;
      pen = 'L';
    } else {
      pen = 'M';
    }
  });
  return found;
}

/** Points without a neighbour, through which no line goes. */
function alone(
  x: readonly number[],
  values: readonly Value[]
): Array<[number, number]> {
  return values.flatMap((value, at): Array<[number, number]> =>
    typeof value === 'number' &&
    typeof values[at - 1] !== 'number' &&
    typeof values[at + 1] !== 'number'
      ? [[x[at]!, value]]
      : []
  );
}

function scale(
  [from, to]: readonly [number, number],
  start: number,
  end: number,
  logarithmic: boolean
): (value: number) => number {
  const of = logarithmic ? Math.log10 : (value: number) => value;
  const [low, high] = [of(from), of(to)];
  // In halves: the difference of two large floats may be none.
  const span = high / 2 - low / 2 || 1;
  return value => start + ((of(value) / 2 - low / 2) / span) * (end - start);
}

function text(x: number, y: number, words: string, attributes: string): string {
  return words === ''
    ? ''
    : `<text x="${rounded(x)}" y="${rounded(y)}" ${attributes}>${escaped(words)}</text>`;
}

function rounded(value: number): string {
  return String(Number(value.toFixed(2)));
}

function clipped(name: string, most: number): string {
  const letters = [...name];
  return letters.length > most
    ? `${letters.slice(0, most - 1).join('')}…`
    : name;
}

/** What XML has no place for goes, what it reads as markup becomes text. */
function escaped(words: string): string {
  return words
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '�')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

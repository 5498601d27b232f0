/** What a plot is made of: shapes that are drawn on a canvas, and written as an SVG file. */

export type Anchor = 'start' | 'middle' | 'end';

export interface LineShape {
  readonly kind: 'line';
  /** x, y, x, y ... */
  readonly points: readonly number[];
  readonly stroke: string;
  readonly width: number;
  readonly opacity?: number;
  readonly dashed?: boolean;
}

/** How a point looks: experiments differ by it as well as by their colours. */
export type Mark = 'circle' | 'diamond' | 'square' | 'triangle' | 'cross';
export const MARKS: readonly Mark[] = [
  'circle',
  'diamond',
  'square',
  'triangle'
];

export interface DotShape {
  readonly kind: 'dot';
  readonly x: number;
  readonly y: number;
  readonly r: number;
  readonly fill: string;
  readonly mark?: Mark;
  readonly stroke?: string;
  readonly opacity?: number;
}

export interface RectShape {
  readonly kind: 'rect';
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly fill: string;
}

export interface TextShape {
  readonly kind: 'text';
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly fill: string;
  readonly anchor?: Anchor;
  readonly rotated?: boolean;
  readonly bold?: boolean;
}

export type Shape = LineShape | DotShape | RectShape | TextShape;

export interface Size {
  readonly width: number;
  readonly height: number;
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const FONT_SIZE = 11;
const DASH = [4, 3];

/** Draw shapes; neighbours of the same look become a single path, so that thousands are quick. */
export function drawShapes(
  context: CanvasRenderingContext2D,
  shapes: readonly Shape[]
): void {
  let look = '';
  let finish: () => void = () => undefined;
  for (const shape of shapes) {
    const next = lookOf(shape);
    if (next !== look || shape.kind === 'text') {
      finish();
      finish = begin(context, shape);
      look = next;
    }
    add(context, shape);
  }
  finish();
  context.globalAlpha = 1;
}

function lookOf(shape: Shape): string {
  switch (shape.kind) {
    case 'line':
      return `l${shape.stroke}/${shape.width}/${shape.opacity ?? 1}/${shape.dashed ?? false}`;
    case 'dot':
      return `d${shape.fill}/${shape.opacity ?? 1}/${shape.stroke ?? ''}/${shape.mark === 'cross'}`;
    case 'rect':
      return `r${shape.fill}`;
    case 'text':
      return 't';
  }
}

function begin(context: CanvasRenderingContext2D, shape: Shape): () => void {
  context.beginPath();
  context.setLineDash([]);
  switch (shape.kind) {
    case 'line':
      context.globalAlpha = shape.opacity ?? 1;
      context.strokeStyle = shape.stroke;
      context.lineWidth = shape.width;
      context.lineJoin = 'round';
      context.setLineDash(shape.dashed ? DASH : []);
      return () => context.stroke();
    case 'dot':
      context.globalAlpha = shape.opacity ?? 1;
      if (shape.mark === 'cross') {
        context.strokeStyle = shape.fill;
        context.lineWidth = 1.5;
        return () => context.stroke();
      }
      context.fillStyle = shape.fill;
      return () => {
        context.fill();
        if (shape.stroke) {
          context.strokeStyle = shape.stroke;
          context.lineWidth = 1;
          context.stroke();
        }
      };
    case 'rect':
      context.globalAlpha = 1;
      context.fillStyle = shape.fill;
      return () => context.fill();
    case 'text':
      context.globalAlpha = 1;
      return () => undefined;
  }
}

function add(context: CanvasRenderingContext2D, shape: Shape): void {
  switch (shape.kind) {
    case 'line':
      for (let at = 0; at < shape.points.length; at += 2) {
        const [x, y] = [shape.points[at]!, shape.points[at + 1]!];
        if (at === 0) {
          context.moveTo(x, y);
        } else {
          context.lineTo(x, y);
        }
      }
      return;
    case 'dot':
      addDot(context, shape);
      return;
    case 'rect':
      context.rect(shape.x, shape.y, shape.width, shape.height);
      return;
    case 'text':
      context.save();
      context.translate(shape.x, shape.y);
      if (shape.rotated) {
        context.rotate(-Math.PI / 2);
      }
      context.fillStyle = shape.fill;
      context.font = `${shape.bold ? '600 ' : ''}${FONT_SIZE}px ${FONT}`;
      context.textAlign = canvasAlign(shape.anchor);
      context.fillText(shape.text, 0, 0);
      context.restore();
  }
}

function canvasAlign(anchor: Anchor = 'start'): CanvasTextAlign {
  return anchor === 'middle' ? 'center' : anchor;
}

function addDot(context: CanvasRenderingContext2D, dot: DotShape): void {
  const corners = cornersOf(dot);
  if (corners === null) {
    context.moveTo(dot.x + dot.r, dot.y);
    context.arc(dot.x, dot.y, dot.r, 0, 2 * Math.PI);
    return;
  }
  corners.forEach(([x, y], at) => {
    if (at === 0 || (dot.mark === 'cross' && at === 2)) {
      context.moveTo(x, y);
    } else {
      context.lineTo(x, y);
    }
  });
  if (dot.mark !== 'cross') {
    context.closePath();
  }
}

/** Corners of a mark; null for a circle. */
function cornersOf({
  x,
  y,
  r,
  mark = 'circle'
}: DotShape): Array<[number, number]> | null {
  const half = r * 0.9;
  switch (mark) {
    case 'circle':
      return null;
    case 'diamond':
      return [
        [x, y - r * 1.25],
        [x + r * 1.25, y],
        [x, y + r * 1.25],
        [x - r * 1.25, y]
      ];
    case 'square':
      return [
        [x - half, y - half],
        [x + half, y - half],
        [x + half, y + half],
        [x - half, y + half]
      ];
    case 'triangle':
      return [
        [x, y - r * 1.2],
        [x + r * 1.1, y + half],
        [x - r * 1.1, y + half]
      ];
    case 'cross':
      return [
        [x - half, y - half],
        [x + half, y + half],
        [x - half, y + half],
        [x + half, y - half]
      ];
  }
}

/** An SVG file of shapes, with a title. */
export function svgText(
  title: string,
  shapes: readonly Shape[],
  { width, height }: Size,
  colours: { surface: string; strong: string }
): string {
  const head = 26;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + head}" ` +
    `viewBox="0 0 ${width} ${height + head}" font-family="${escaped(FONT)}" font-size="${FONT_SIZE}">\n` +
    `<title>${escaped(title)}</title>\n` +
    `<rect width="${width}" height="${height + head}" fill="${escaped(colours.surface)}"/>\n` +
    `<text x="8" y="18" font-size="14" font-weight="600" fill="${escaped(colours.strong)}">${escaped(clipped(title, 90))}</text>\n` +
    `<g transform="translate(0 ${head})">\n${shapes.map(shapeText).join('\n')}\n</g>\n</svg>\n`
  );
}

function shapeText(shape: Shape): string {
  const opacity =
    'opacity' in shape && shape.opacity !== undefined
      ? ` opacity="${shape.opacity}"`
      : '';
  switch (shape.kind) {
    case 'line': {
      const path: string[] = [];
      for (let at = 0; at < shape.points.length; at += 2) {
        path.push(
          `${round(shape.points[at]!)},${round(shape.points[at + 1]!)}`
        );
      }
      const dash = shape.dashed ? ` stroke-dasharray="${DASH.join(' ')}"` : '';
      return `<polyline points="${path.join(' ')}" fill="none" stroke="${escaped(shape.stroke)}" stroke-width="${shape.width}"${dash}${opacity}/>`;
    }
    case 'dot': {
      const corners = cornersOf(shape);
      const stroke = shape.stroke ? ` stroke="${escaped(shape.stroke)}"` : '';
      if (corners === null) {
        return `<circle cx="${round(shape.x)}" cy="${round(shape.y)}" r="${shape.r}" fill="${escaped(shape.fill)}"${stroke}${opacity}/>`;
      }
      const at = corners.map(([x, y]) => `${round(x)} ${round(y)}`);
      return shape.mark === 'cross'
        ? `<path d="M${at[0]}L${at[1]}M${at[2]}L${at[3]}" stroke="${escaped(shape.fill)}" stroke-width="1.5"${opacity}/>`
        : `<path d="M${at.join('L')}Z" fill="${escaped(shape.fill)}"${stroke}${opacity}/>`;
    }
    case 'rect':
      return `<rect x="${round(shape.x)}" y="${round(shape.y)}" width="${round(shape.width)}" height="${round(shape.height)}" fill="${escaped(shape.fill)}"/>`;
    case 'text': {
      const place = shape.rotated
        ? `transform="translate(${round(shape.x)} ${round(shape.y)}) rotate(-90)"`
        : `x="${round(shape.x)}" y="${round(shape.y)}"`;
      const weight = shape.bold ? ' font-weight="600"' : '';
      return `<text ${place} text-anchor="${shape.anchor ?? 'start'}"${weight} fill="${escaped(shape.fill)}">${escaped(shape.text)}</text>`;
    }
  }
}

function round(value: number): number {
  return Number(value.toFixed(1));
}

export function clipped(text: string, most: number): string {
  const letters = [...text.slice(0, 2 * most + 2)];
  return letters.length > most
    ? `${letters.slice(0, Math.max(most - 1, 1)).join('')}…`
    : text;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;'
};

function escaped(text: string): string {
  return (
    text
      .replace(/[&<>"]/g, letter => ESCAPES[letter]!)
      // XML has no place for control characters.
      // eslint-disable-next-line no-control-regex
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '�')
  );
}

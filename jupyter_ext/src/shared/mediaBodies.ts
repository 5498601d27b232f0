/** Pictures, tables, texts and histograms as DOM. What comes from outside becomes text, never markup. */

import { make } from './dom';
import { formatValue } from './format';
import type { MediaContents } from './mediaContents';
import type { Medium } from './model';
import type { MediaSeries } from './outputs';
import type { Box } from './svg';
import { label, line, shape, svgImage } from './svg';

/** Of what was logged under one name after one batch, so many are shown. */
export const MOST_ITEMS = 64;
/** Pictures of so few pixels, such as digits, are enlarged. */
const SMALL_PIXELS = 64;
const TABLE_ROWS = 50;
const TEXT_CHARACTERS = 20_000;
const BOX: Box = {
  width: 300,
  height: 130,
  left: 44,
  right: 8,
  top: 8,
  bottom: 22
};

/** What was logged under one name after one batch, as an element; rejects with words for the user. */
export async function drawMoment(
  series: MediaSeries,
  index: number,
  contents: MediaContents
): Promise<HTMLElement> {
  const { items, batch } = series.moments[index]!;
  const shown = items.slice(0, MOST_ITEMS);
  const drawn = await Promise.all(
    shown.map((item, at) => {
      const which = items.length > 1 ? `, ${at + 1} of ${items.length}` : '';
      const words = `${series.name} after batch ${batch}${which}`;
      return drawItem(item, words, contents);
    })
  );
  const more = items.length - shown.length;
  return make(
    'div',
    `det-media-items det-media-${series.kind}`,
    {},
    ...drawn,
    more > 0 ? make('p', 'det-empty', {}, `and ${more} more`) : null
  );
}

async function drawItem(
  item: Medium,
  words: string,
  contents: MediaContents
): Promise<HTMLElement> {
  const body = await drawBody(item, words, contents);
  const caption = item.caption
    ? make('div', 'det-media-caption', {}, item.caption)
    : null;
  return make('div', 'det-media-item', {}, body, caption);
}

async function drawBody(
  item: Medium,
  words: string,
  contents: MediaContents
): Promise<HTMLElement> {
  switch (item.kind) {
    case 'image':
      return drawPicture(item, words, contents);
    case 'table':
      return drawTable((await contents.json(item)) as TableContent, words);
    case 'histogram':
      return drawHistogram(
        (await contents.json(item)) as HistogramContent,
        words
      );
    case 'output':
    case 'text':
      return drawText(await contents.text(item), words);
  }
}

async function drawPicture(
  item: Medium,
  words: string,
  contents: MediaContents
): Promise<HTMLElement> {
  const alt = item.caption ? `${words}: ${item.caption}` : words;
  const picture = make('img', 'det-media-picture', { alt });
  if (item.width && item.height) {
    picture.width = item.width;
    picture.height = item.height;
    picture.classList.toggle('det-small', item.width <= SMALL_PIXELS);
  }
  picture.addEventListener(
    'error',
    () =>
      void contents
        .dataAddress(item)
        .then(address => (picture.src = address))
        .catch(() => undefined), // its alternative text is there
    { once: true }
  );
  picture.src = await contents.address(item);
  return picture;
}

/** A table as it travels: `total` says how many rows there were. */
interface TableContent {
  readonly columns?: readonly unknown[];
  readonly rows?: ReadonlyArray<readonly unknown[]>;
  readonly total?: number;
}

function drawTable(
  { columns = [], rows = [], total = rows.length }: TableContent,
  words: string
): HTMLElement {
  const head = columns.map(name =>
    make('th', '', { scope: 'col' }, String(name))
  );
  const body = rows.slice(0, TABLE_ROWS).map(row =>
    make(
      'tr',
      '',
      {},
      ...row.map(cell => {
        const numeric = typeof cell === 'number' ? 'det-numeric' : '';
        return make('td', numeric, {}, cellText(cell));
      })
    )
  );
  const table = make(
    'table',
    'det-table',
    { 'aria-label': words },
    make('thead', '', {}, make('tr', '', {}, ...head)),
    make('tbody', '', {}, ...body)
  );
  const scroll = make(
    'div',
    'det-scroll',
    { tabindex: '0', role: 'region', 'aria-label': words },
    table
  );
  const left = total - body.length;
  const note =
    left > 0
      ? make(
          'p',
          'det-empty',
          {},
          `The first ${body.length} of ${total.toLocaleString('en')} rows.`
        )
      : null;
  return make('div', '', {}, scroll, note);
}

function cellText(cell: unknown): string {
  return typeof cell === 'string' ? cell : formatValue(cell);
}

function drawText(text: string, words: string): HTMLElement {
  const letters = [...text];
  const cut = letters.length > TEXT_CHARACTERS;
  const shown = cut ? `${letters.slice(0, TEXT_CHARACTERS).join('')}…` : text;
  return make(
    'pre',
    'det-media-text',
    { tabindex: '0', role: 'region', 'aria-label': words },
    shown
  );
}

/** A histogram as it travels: one edge more than there are counts. */
interface HistogramContent {
  readonly counts?: readonly number[];
  readonly edges?: readonly number[];
  readonly not_finite?: number;
}

function drawHistogram(
  { counts = [], edges = [], not_finite: odd = 0 }: HistogramContent,
  words: string
): HTMLElement {
  const [low = 0, high = 1] = [edges[0], edges.at(-1)];
  const most = Math.max(...counts, 0);
  const { width, height, left, right, top, bottom } = BOX;
  const span = high > low ? high - low : 1;
  const x = (value: number) =>
    left + ((value - low) / span) * (width - left - right);
  const y = (count: number) =>
    height - bottom - (most > 0 ? count / most : 0) * (height - top - bottom);
  const corners = counts.flatMap((count, index): Array<[number, number]> => [
    [x(edges[index]!), y(count)],
    [x(edges[index + 1] ?? high), y(count)]
  ]);
  const base = height - bottom;
  const outline: Array<[number, number]> = [
    [x(low), base],
    ...corners,
    [x(high), base]
  ];
  const total = counts.reduce((sum, count) => sum + count, 0);
  const told = `${total.toLocaleString('en')} values from ${formatValue(low)} to ${formatValue(high)}`;
  const svg = svgImage(`${words}: ${told}`, BOX, [
    shape(outline, 'det-histogram'),
    line(left, base, width - right, base),
    label(left, height - 5, formatValue(low), 'start'),
    label(width - right, height - 5, formatValue(high), 'end'),
    label(left - 5, base, '0', 'end'),
    label(left - 5, top + 8, formatValue(most), 'end')
  ]);
  const rest = odd > 0 ? `, ${odd.toLocaleString('en')} not finite` : '';
  return make(
    'div',
    'det-search-panel',
    {},
    svg,
    make('div', 'det-media-caption', {}, `${told}${rest}`)
  );
}

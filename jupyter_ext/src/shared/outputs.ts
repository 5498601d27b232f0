/** What a trial gives besides metrics, in the order in which it is shown. Pure. */

import { bestTrial, shownTrial } from './facts';
import type { Artifact, ExperimentView, Medium } from './model';
import { logTrial } from './view';

/** What was logged under one name after one batch. */
export interface Moment {
  readonly batch: number;
  readonly items: readonly Medium[];
}

/** What was logged under one name, oldest first. */
export interface MediaSeries {
  readonly key: string;
  readonly kind: Medium['kind'];
  readonly name: string;
  readonly moments: readonly Moment[];
}

const KINDS: ReadonlyArray<
  readonly [kind: Medium['kind'], one: string, many: string]
> = [
  ['image', 'picture', 'pictures'],
  ['histogram', 'histogram', 'histograms'],
  ['table', 'table', 'tables'],
  ['text', 'text', 'texts']
];

const MIME: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  svg: 'image/svg+xml'
};

/** Of an unknown format what no browser shows as a page. */
export function mimeOf({ format }: Pick<Medium, 'format'>): string {
  return MIME[format] ?? 'application/octet-stream';
}

/** The trial whose outputs are shown as long as nobody chooses one: the best, as `experiment.media` has it. */
export function outputsTrial(view: ExperimentView): number | null {
  const trial = shownTrial(view) ?? bestTrial(view) ?? logTrial(view);
  return trial?.id ?? null;
}

/** Media by kind and name: pictures first, names in the order in which they came, batches ascending. */
export function seriesOf(media: readonly Medium[]): MediaSeries[] {
  const found = new Map<string, Medium[]>();
  for (const medium of media) {
    const key = `${medium.kind} ${medium.name}`;
    const known = found.get(key);
    if (known) {
      known.push(medium);
    } else {
      found.set(key, [medium]);
    }
  }
  const place = (kind: Medium['kind']) =>
    KINDS.findIndex(([each]) => each === kind);
  return [...found]
    .map(([key, items]) => ({
      key,
      kind: items[0]!.kind,
      name: items[0]!.name,
      moments: momentsOf(items)
    }))
    .sort((one, other) => place(one.kind) - place(other.kind));
}

function momentsOf(items: readonly Medium[]): Moment[] {
  const found = new Map<number, Medium[]>();
  for (const item of items) {
    found.set(item.batch, [...(found.get(item.batch) ?? []), item]);
  }
  return [...found]
    .map(([batch, same]) => ({
      batch,
      items: same.toSorted((one, other) => one.number - other.number)
    }))
    .sort((one, other) => one.batch - other.batch);
}

/** The moment at a batch, or the last one before it; the newest for null. */
export function momentAt(
  moments: readonly Moment[],
  batch: number | null
): number {
  if (batch === null) {
    return moments.length - 1;
  }
  const index = moments.findLastIndex(moment => moment.batch <= batch);
  return Math.max(index, 0);
}

/** `batch 1,200 (3 of 12)`. */
export function momentText(moments: readonly Moment[], index: number): string {
  const batch = `batch ${(moments[index]?.batch ?? 0).toLocaleString('en')}`;
  return moments.length > 1
    ? `${batch} (${index + 1} of ${moments.length})`
    : batch;
}

/** `2 pictures, 1 table`: so many names of each kind. */
export function seriesText(series: readonly MediaSeries[]): string {
  return KINDS.map(([kind, one, many]) => {
    const count = series.filter(each => each.kind === kind).length;
    return count > 0 ? `${count} ${count === 1 ? one : many}` : '';
  })
    .filter(Boolean)
    .join(', ');
}

/** The last part of a path. */
export function fileName({ path }: Pick<Artifact, 'path'>): string {
  return path.split('/').at(-1) ?? path;
}

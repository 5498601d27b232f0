/** What a trial uses of its machine, in the shape in which it is drawn. Pure. */

import { formatBytes } from './format';
import type { SystemSample } from './model';

/** Seconds since the first sample, and the value there. */
export type SystemPoint = readonly [number, number];

/** One quantity of one process: stretches of points, with gaps where nothing was measured for long. */
export interface SystemLine {
  readonly label: string;
  readonly stretches: ReadonlyArray<readonly SystemPoint[]>;
}

export interface SystemPanel {
  readonly title: string;
  /** The upper end of the axis; the lower one is 0. */
  readonly top: number;
  readonly lines: readonly SystemLine[];
  readonly format: (value: number) => string;
}

interface Quantity {
  readonly title: string;
  /** Names of its metrics; what is in parentheses tells several apart. */
  readonly names: RegExp;
  readonly format: (value: number) => string;
  /** The axis reaches at least to this. */
  readonly least: number;
}

const percent = (value: number) =>
  `${Number(value.toPrecision(value < 100 ? 2 : 3))} %`;
const rate = (value: number) => `${formatBytes(value)}/s`;

const QUANTITIES: readonly Quantity[] = [
  { title: 'CPU', names: /^cpu_percent$/, format: percent, least: 100 },
  { title: 'Memory', names: /^memory_bytes$/, format: formatBytes, least: 1 },
  { title: 'GPU', names: /^(gpu\d+)_percent$/, format: percent, least: 100 },
  {
    title: 'GPU memory',
    names: /^(gpu\d+)_memory_bytes$/,
    format: formatBytes,
    least: 1
  },
  {
    title: 'Disk',
    names: /^disk_(read|write)_bytes_per_second$/,
    format: rate,
    least: 1000
  },
  {
    title: 'Network of the machine',
    names: /^network_(received|sent)_bytes_per_second$/,
    format: rate,
    least: 1000
  }
];

/** Seconds without a sample, and as many times the usual distance, that are a gap: the trial waited, say. */
const GAP_SECONDS = 20;
const GAP_DISTANCES = 4;

/** A panel for each quantity that was measured. */
export function systemPanels(samples: readonly SystemSample[]): SystemPanel[] {
  const begin = samples[0]?.time ?? 0;
  const ranks = byRank(samples);
  return QUANTITIES.flatMap(({ title, names, format, least }) => {
    const found = [...ranks].flatMap(([rank, own]) =>
      namesIn(own, names).map(([name, word]) => ({ rank, own, name, word }))
    );
    const words = new Set(found.map(({ word }) => word)).size;
    const lines = found.map(({ rank, own, name, word }) => ({
      label: [ranks.size > 1 ? `rank ${rank}` : '', words > 1 ? word : '']
        .filter(Boolean)
        .join(', '),
      stretches: stretchesOf(own, name, begin)
    }));
    const values = lines.flatMap(({ stretches }) =>
      stretches.flat().map(([, value]) => value)
    );
    const top = values.reduce((one, other) => Math.max(one, other), least);
    return lines.length > 0 ? [{ title, top, lines, format }] : [];
  });
}

/** All of it in a few words: of a trial that goes on as it is now, of one that has ended over all of its time. */
export function systemText(
  samples: readonly SystemSample[],
  ended: boolean
): string {
  const ranks = [...byRank(samples).values()];
  const over = (
    names: RegExp,
    reduce: (values: readonly number[]) => number
  ): number[] =>
    ranks.flatMap(own =>
      namesIn(own, names).map(([name]) =>
        reduce(own.flatMap(({ metrics }) => metrics[name] ?? []))
      )
    );
  const last = (values: readonly number[]) => values.at(-1) ?? 0;
  const most = (values: readonly number[]) =>
    values.reduce((one, other) => Math.max(one, other), 0);
  const [share, amount] = ended ? [mean, most] : [last, last];
  const onAverage = ended ? ' on average' : '';
  const atMost = ended ? 'at most ' : '';
  const cpu = over(/^cpu_percent$/, share);
  const memory = over(/^memory_bytes$/, amount);
  const gpu = over(/^gpu\d+_percent$/, share);
  const gpuMemory = over(/^gpu\d+_memory_bytes$/, amount);
  return [
    cpu.length > 0 && `CPU ${percent(sum(cpu))}${onAverage}`,
    memory.length > 0 && `memory ${atMost}${formatBytes(sum(memory))}`,
    gpu.length > 0 && `GPU ${percent(mean(gpu))}${onAverage}`,
    gpuMemory.length > 0 && `GPU memory ${atMost}${formatBytes(sum(gpuMemory))}`
  ]
    .filter(Boolean)
    .join(', ');
}

/** The point of a line nearest to a time; null if there is none near it. */
export function pointAt(line: SystemLine, seconds: number): SystemPoint | null {
  const distance = ([time]: SystemPoint) => Math.abs(time - seconds);
  return line.stretches
    .flat()
    .reduce<SystemPoint | null>(
      (found, point) =>
        found === null || distance(point) <= distance(found) ? point : found,
      null
    );
}

function byRank(
  samples: readonly SystemSample[]
): Map<number, readonly SystemSample[]> {
  const ranks = new Map<number, SystemSample[]>();
  for (const sample of samples) {
    const rank = sample.rank ?? 0;
    const own = ranks.get(rank);
    if (own) {
      own.push(sample);
    } else {
      ranks.set(rank, [sample]);
    }
  }
  return new Map([...ranks].sort(([one], [other]) => one - other));
}

/** The metrics that a pattern names, with the words that tell them apart. */
function namesIn(
  samples: readonly SystemSample[],
  pattern: RegExp
): Array<readonly [string, string]> {
  const names = new Set(samples.flatMap(({ metrics }) => Object.keys(metrics)));
  return [...names].sort().flatMap(name => {
    const match = pattern.exec(name);
    const word = (match?.[1] ?? '').replace(/^gpu/, 'GPU ');
    return match ? [[name, word] as const] : [];
  });
}

function stretchesOf(
  samples: readonly SystemSample[],
  name: string,
  begin: number
): SystemPoint[][] {
  const points = samples.flatMap(({ time, metrics }): SystemPoint[] => {
    const value = metrics[name];
    return value === undefined ? [] : [[time - begin, value]];
  });
  const distances = points
    .slice(1)
    .map(([time], index) => time - (points[index]?.[0] ?? time))
    .sort((one, other) => one - other);
  const usual = distances[Math.floor(distances.length / 2)] ?? 0;
  const gap = Math.max(GAP_SECONDS, GAP_DISTANCES * usual);
  const stretches: SystemPoint[][] = [];
  let before = -Infinity;
  for (const point of points) {
    if (point[0] - before > gap) {
      stretches.push([]);
    }
    stretches.at(-1)?.push(point);
    before = point[0];
  }
  return stretches;
}

function sum(values: readonly number[]): number {
  return values.reduce((one, other) => one + other, 0);
}

function mean(values: readonly number[]): number {
  return values.length > 0 ? sum(values) / values.length : 0;
}

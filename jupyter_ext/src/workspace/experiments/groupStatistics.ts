/** Groups of experiments: how they are called, and where their means and bands lie on a common scale. Pure. */

import { formatDuration, formatValue } from '../../shared/format';
import type { Group } from './rows';

/** The name of a group, by what its experiments have in common. */
export function groupName(by: string, value: unknown): string {
  if (value !== null && value !== undefined) {
    return typeof value === 'string' ? value : formatValue(value);
  }
  const kind = by.startsWith('hp:') ? by.slice(3) : by;
  return `without ${kind}`;
}

/** The range of the means with their bands, of all groups; null without any. */
export function scaleOf(
  groups: readonly Group[]
): { low: number; high: number } | null {
  const ends = groups.flatMap(({ mean, deviation }) =>
    typeof mean === 'number'
      ? [mean - (deviation ?? 0), mean + (deviation ?? 0)]
      : []
  );
  if (ends.length === 0) {
    return null;
  }
  const low = ends.reduce((a, b) => Math.min(a, b));
  const high = ends.reduce((a, b) => Math.max(a, b));
  return low === high
    ? {
        low: low - Math.abs(low || 1) / 2,
        high: high + Math.abs(high || 1) / 2
      }
    : { low, high };
}

/** Where a band lies on a scale, from 0 to 1. */
export function bandOf(
  group: Group,
  scale: { low: number; high: number }
): { from: number; middle: number; to: number } | null {
  const { mean, deviation } = group;
  if (typeof mean !== 'number') {
    return null;
  }
  const place = (value: number) =>
    Math.min(Math.max((value - scale.low) / (scale.high - scale.low), 0), 1);
  const spread = deviation ?? 0;
  return {
    from: place(mean - spread),
    middle: place(mean),
    to: place(mean + spread)
  };
}

/** `0.5 ± 0.1`; durations as times. */
export function meanText(group: Group, measure: string): string {
  const { mean, deviation } = group;
  if (mean === null || mean === undefined) {
    return '—';
  }
  const text = (value: number) => measureText(value, measure);
  return typeof deviation === 'number'
    ? `${text(mean)} ± ${text(deviation)}`
    : text(mean);
}

/** A value of a measure. */
export function measureText(
  value: number | null | undefined,
  measure: string
): string {
  if (value === null || value === undefined) {
    return '—';
  }
  return measure.startsWith('duration')
    ? formatDuration(value / 1000)
    : formatValue(value);
}

/** The keyboard on a chart: arrows move the cursor, plus and minus zoom. Pure. */

import { nearestIndex } from './hover';
import type { Zoom } from './series';
import type { Shared } from './sync';

export interface KeyState {
  readonly cursor: number | null;
  /** What is shown now, and all that there is. */
  readonly shown: readonly [number, number];
  readonly all: readonly [number, number];
  /** Where any series has a point. */
  readonly stops: readonly number[];
}

const FACTOR = 2;
const PAGES = 10;

/** What a key changes; null where it means nothing here. */
export function changeByKey(
  { key, shiftKey }: Pick<KeyboardEvent, 'key' | 'shiftKey'>,
  state: KeyState
): Partial<Shared> | null {
  const { cursor, shown, all } = state;
  const stops = state.stops.filter(at => at >= shown[0] && at <= shown[1]);
  const at = cursor === null ? null : nearestIndex(stops, cursor);
  const to = (index: number): Partial<Shared> => ({
    cursor: stops[Math.min(Math.max(index, 0), stops.length - 1)] ?? null
  });
  const page = Math.max(1, Math.round(stops.length / PAGES));
  switch (key) {
    case 'ArrowLeft':
      return shiftKey
        ? { zoom: moved(shown, all, -1) }
        : to(at === null ? stops.length - 1 : at - 1);
    case 'ArrowRight':
      return shiftKey
        ? { zoom: moved(shown, all, 1) }
        : to(at === null ? 0 : at + 1);
    case 'PageDown':
      return to((at ?? stops.length) - page);
    case 'PageUp':
      return to((at ?? -1) + page);
    case 'Home':
      return to(0);
    case 'End':
      return to(stops.length - 1);
    case '+':
    case '=':
      return { zoom: zoomed(shown, all, cursor, 1 / FACTOR) };
    case '-':
      return { zoom: zoomed(shown, all, cursor, FACTOR) };
    case '0':
      return { zoom: null };
    case 'Escape':
      return cursor === null ? null : { cursor: null };
    default:
      return null;
  }
}

/** The stretch around the cursor, or the middle, so many times as long; null for all. */
function zoomed(
  [from, to]: readonly [number, number],
  all: readonly [number, number],
  cursor: number | null,
  factor: number
): Zoom {
  const centre =
    cursor !== null && cursor >= from && cursor <= to
      ? cursor
      : from + (to - from) / 2;
  const [low, high] = [
    Math.max(centre - (centre - from) * factor, all[0]),
    Math.min(centre + (to - centre) * factor, all[1])
  ];
  return low <= all[0] && high >= all[1] ? null : [low, high];
}

function moved(
  [from, to]: readonly [number, number],
  all: readonly [number, number],
  direction: number
): Zoom {
  const length = to - from;
  const start = Math.min(
    Math.max(from + (direction * length) / 4, all[0]),
    all[1] - length
  );
  return length >= all[1] - all[0] ? null : [start, start + length];
}

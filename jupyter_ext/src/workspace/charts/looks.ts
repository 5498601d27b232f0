/** How lines are told apart: colour, dash, width. Pure. */

import type { Palette } from '../../shared/palette';
import type { Series } from './series';

/** Lines beyond the eighth colour are told apart by these. */
const DASHES: ReadonlyArray<readonly number[] | null> = [
  null,
  [8, 4],
  [2, 3],
  [8, 3, 2, 3],
  [14, 4]
];
const DASHED = [5, 3];
const COLOURS = 8;

export interface LineLook {
  /** Index of the palette; -1 for the grey of the background. */
  readonly colour: number;
  readonly dash: readonly number[] | null;
  readonly width: number;
  readonly alpha: number;
}

export function lookOf({ colour, dashed, look = 'plain' }: Series): LineLook {
  const dash = DASHES[Math.floor(colour / COLOURS) % DASHES.length] ?? null;
  const chosen = dashed ? (dash ?? DASHED) : dash;
  switch (look) {
    case 'plain':
      return { colour: colour % COLOURS, dash: chosen, width: 1.5, alpha: 1 };
    case 'bold':
      return { colour: colour % COLOURS, dash: chosen, width: 2.25, alpha: 1 };
    case 'faint':
      return {
        colour: colour % COLOURS,
        dash: chosen,
        width: 1.25,
        alpha: 0.55
      };
    case 'background':
      return { colour: -1, dash: chosen, width: 1, alpha: 0.7 };
  }
}

/** The colour of a line. */
export function colourOf(index: number, palette: Palette): string {
  return palette.trials[index] ?? palette.other;
}

const LONGEST_LABEL = 28;

/** A name of any length beside an axis. */
export function axisLabel(name: string): string {
  const letters = [...name.replace(/\s+/g, ' ')];
  return letters.length > LONGEST_LABEL
    ? `${letters.slice(0, LONGEST_LABEL - 1).join('')}…`
    : letters.join('');
}

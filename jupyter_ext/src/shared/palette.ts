/** Colours of charts, from the page's CSS variables: light and dark follow the page. */

import type { Line } from './plotData';

export interface Palette {
  readonly text: string;
  readonly grid: string;
  readonly other: string;
  readonly trials: readonly string[];
}

const TRIAL_COLOURS = 8;

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const colour = (name: string, otherwise: string) =>
    style.getPropertyValue(`--det-${name}`).trim() || otherwise;
  const trials = Array.from({ length: TRIAL_COLOURS }, (_, index) =>
    colour(`trial-${index + 1}`, '#4c78a8')
  );
  return {
    text: colour('muted', '#616161'),
    grid: colour('grid', 'rgba(128, 128, 128, 0.2)'),
    other: colour('other', '#b0b0b0'),
    trials
  };
}

/** How a line looks. */
export interface LineStyle {
  readonly colour: string;
  readonly width: number;
  readonly dashed: boolean;
  readonly points: boolean;
  readonly label: string;
  /** Whether it is one of many that only give the background. */
  readonly background: boolean;
  /** Whether another line is highlighted. */
  readonly faded: boolean;
}

const MOST_POINTS = 120;

/**
 * Give each line its look: the colour of its trial, dashed for training and solid for validation; where there are more
 * trials than colours, only the best one has one, and the one that is highlighted.
 *
 * `numberOf` gives the number of a trial inside the experiment. Colours are those of all trials of the experiment, so that they do not change with the metric.
 */
export function styleLines(
  lines: readonly Line[],
  trials: readonly number[],
  best: number | null,
  palette: Palette,
  highlighted: number | null = null,
  numberOf: (trialId: number) => number = id => id
): LineStyle[] {
  const both = new Set(lines.map(line => line.validation)).size === 2;
  const highlights = lines.some(line => line.trialId === highlighted);
  return lines.map(line => {
    const dashed = !line.validation && (!line.logged || both);
    const points = !dashed
      ? line.batch.length <= MOST_POINTS
      : line.batch.length === 1;
    const kind = line.validation
      ? 'validation'
      : line.logged
        ? 'logged'
        : 'training';
    if (trials.length <= 1) {
      return {
        colour: palette.trials[0] ?? palette.other,
        width: dashed ? 1.5 : 2,
        dashed,
        points,
        label: kind,
        background: false,
        faded: false
      };
    }
    const isBest = line.trialId === best;
    const isHighlighted = line.trialId === highlighted;
    const crowded = trials.length > palette.trials.length;
    const background = crowded && !isBest && !isHighlighted;
    const place = placeOf(line, trials, isBest, palette.trials.length);
    const colour = background
      ? palette.other
      : (palette.trials[place] ?? palette.other);
    const label = `trial ${numberOf(line.trialId)}${isBest ? ' (best)' : ''}${both ? `, ${kind}` : ''}`;
    const width = isHighlighted ? 2.75 : isBest ? 2.25 : 1.25;
    return {
      colour,
      width,
      dashed,
      points,
      label,
      background,
      faded: highlights && !isHighlighted && !background
    };
  });
}

/** Index of a trial's colour: where there are more trials than colours, the best one has the first for itself. */
function placeOf(
  line: Line,
  trials: readonly number[],
  isBest: boolean,
  colours: number
): number {
  const place = trials.indexOf(line.trialId);
  if (trials.length <= colours) {
    return place;
  }
  return isBest ? 0 : 1 + (place % (colours - 1));
}

/** Call `listener` when the page's theme changes; returns what ends it. */
export function watchTheme(
  document: Document,
  listener: () => void
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const observer = new MutationObserver(() => {
    listener();
    // The style sheet of a theme may come after its name.
    clearTimeout(timer);
    timer = setTimeout(listener, 400);
  });
  const options = {
    attributes: true,
    attributeFilter: ['class', 'data-jp-theme-name', 'data-theme']
  };
  observer.observe(document.body, options);
  observer.observe(document.documentElement, options);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}

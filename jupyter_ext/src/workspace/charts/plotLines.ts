/** Lines and bands of a plot, in the words of uPlot. */

import type uPlot from 'uplot';

import type { Palette } from '../../shared/palette';
import { isolated } from '../../shared/plotData';
import type { ColumnInfo } from './aligned';
import { colourOf } from './looks';
import type { Axis, CurveChartProps } from './series';

const BAND_ALPHA = '2e';
const EDGE_ALPHA = '66';
export const RAW_ALPHA = 0.28;
/** Curves of so few points have their points marked. */
const MOST_POINTS = 40;

/** What makes a new plot necessary, and not only new data. */
export function shapeOf(
  columns: readonly ColumnInfo[],
  axis: Axis,
  { settings, unit, title }: CurveChartProps,
  palette: Palette
): string {
  return JSON.stringify([
    axis,
    settings.logX,
    settings.logY,
    unit ?? title,
    palette,
    columns.map(({ drawn, part }) => [
      part,
      drawn.series.key,
      drawn.look,
      drawn.x.length <= MOST_POINTS
    ])
  ]);
}

export function lineOf(
  { drawn, part }: ColumnInfo,
  palette: Palette
): uPlot.Series {
  const { look } = drawn;
  const colour = colourOf(look.colour, palette);
  if (part === 'maximum' || part === 'minimum') {
    return {
      stroke: colour + EDGE_ALPHA,
      width: 1,
      points: { show: false }
    };
  }
  const marked = part === 'main' && drawn.x.length <= MOST_POINTS;
  return {
    stroke: colour,
    width: part === 'raw' ? 1 : look.width,
    ...(look.dash && part === 'main' ? { dash: [...look.dash] } : {}),
    points: {
      show: marked,
      size: 5,
      fill: colour,
      stroke: colour,
      ...(marked
        ? {}
        : { filter: (plot, index) => isolated(plot.data[index] ?? []) })
    }
  };
}

export function bandsOf(
  columns: readonly ColumnInfo[],
  palette: Palette
): uPlot.Band[] {
  return columns.flatMap(({ drawn, part }, index) =>
    part === 'maximum'
      ? [
          {
            series: [index + 1, index + 2] as [number, number],
            fill: colourOf(drawn.look.colour, palette) + BAND_ALPHA
          }
        ]
      : []
  );
}

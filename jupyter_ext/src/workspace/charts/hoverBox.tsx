/** The values of all curves at the cursor, beside it. */

import { capitalised, formatValue, shortened } from '../../shared/format';
import type { CurvePlot, PlotState } from './curvePlot';
import { type Hit, hitsAt } from './hover';
import { colourOf } from './looks';
import { reachOf } from './overlay';
import { groupOf } from './series';
import type { ChartSync } from './sync';
import { xText } from './ticks';
import { useShared } from './useShared';

const MOST_ROWS = 12;

export interface HoverBoxProps {
  readonly plot: CurvePlot;
  readonly state: PlotState;
  readonly sync: ChartSync;
  readonly format?: (value: number) => string;
}

export function HoverBox({ plot, state, sync, format }: HoverBoxProps) {
  const { cursor, highlighted } = useShared(sync);
  if (cursor === null || cursor < state.x[0] || cursor > state.x[1]) {
    return null;
  }
  const hits = hitsAt(state.drawn, cursor, reachOf(state.x), state.x);
  if (hits.length === 0) {
    return null;
  }
  const { left, width } = plot.placeOf(cursor);
  const onLeft = left > width / 2;
  const shown = rowsOf(hits, highlighted);
  return (
    <div
      class="det-curve-hover"
      aria-hidden="true"
      style={
        onLeft
          ? { right: `${width - left + 12}px` }
          : { left: `${left + 12}px` }
      }
    >
      <p class="det-curve-hover-x">{placeText(state, cursor, hits)}</p>
      <table>
        <tbody>
          {shown.map(({ drawn, value }) => (
            <tr
              key={drawn.series.key}
              data-strong={highlighted === groupOf(drawn.series)}
            >
              <td>
                <span
                  class="det-curve-dot"
                  style={{
                    background: colourOf(drawn.look.colour, state.palette)
                  }}
                />
                {shortened(drawn.series.label)}
              </td>
              <td class="det-number">
                {format?.(value) ?? formatValue(value)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {hits.length > shown.length && (
        <p class="det-curve-hover-more">
          and {hits.length - shown.length} more
        </p>
      )}
    </div>
  );
}

/** Of very many the largest; what stands out is always among them. */
function rowsOf(hits: readonly Hit[], highlighted: string | null): Hit[] {
  const strong = hits.filter(
    ({ drawn }) => highlighted === groupOf(drawn.series)
  );
  const others = hits.filter(hit => !strong.includes(hit));
  const kept = new Set([...strong, ...others].slice(0, MOST_ROWS));
  return hits.filter(hit => kept.has(hit));
}

/** Where the values are: at the point that all of them have, else at the cursor. */
export function placeText(
  { axis }: PlotState,
  cursor: number,
  hits: readonly Hit[]
): string {
  const first = hits[0]?.x ?? cursor;
  const at = hits.every(({ x }) => x === first) ? first : cursor;
  const name = {
    batch: 'batch',
    epoch: 'epoch',
    samples: 'samples',
    time: '',
    relative: 'after'
  }[axis];
  return capitalised(`${name} ${xText(axis, at)}`.trim());
}

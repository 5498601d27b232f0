/** Names of the curves with their values; pointing at a name, or the keyboard's focus on it, highlights its curve. */

import { formatValue, shortened } from '../../shared/format';
import type { PlotState } from './curvePlot';
import { hitsAt, lastValue } from './hover';
import { colourOf } from './looks';
import { reachOf } from './overlay';
import { groupOf } from './series';
import type { ChartSync } from './sync';
import { useShared } from './useShared';

/** Of more curves the values do not follow the cursor: the box beside it has them. */
const FOLLOWED = 12;

export interface ChartLegendProps {
  readonly state: PlotState;
  readonly sync: ChartSync;
  readonly format?: (value: number) => string;
}

export function ChartLegend({ state, sync, format }: ChartLegendProps) {
  const { cursor, highlighted, pinned } = useShared(sync);
  const { drawn, x, palette } = state;
  // As they are told: what lies on top first.
  const told = drawn.toReversed();
  const follows = cursor !== null && drawn.length <= FOLLOWED;
  const hits = follows ? hitsAt(drawn, cursor, reachOf(x), x) : [];
  const values = new Map(hits.map(hit => [hit.drawn, hit.value]));
  const text = (value: number | null | undefined) =>
    typeof value === 'number' && Number.isFinite(value) && format
      ? format(value)
      : formatValue(value);
  return (
    <ul class="det-curve-legend" data-many={drawn.length > FOLLOWED}>
      {told.map(each => {
        const { series, look } = each;
        const group = groupOf(series);
        return (
          <li key={series.key}>
            <button
              type="button"
              class="det-curve-name"
              aria-pressed={pinned === group}
              data-faded={highlighted !== null && highlighted !== group}
              title={
                series.detail
                  ? `${series.label}\n${series.detail}`
                  : series.label
              }
              onMouseEnter={() => sync.set({ highlighted: group })}
              onMouseLeave={() => sync.set({ highlighted: pinned })}
              onFocus={() => sync.set({ highlighted: group })}
              onBlur={() => sync.set({ highlighted: sync.shared.pinned })}
              onClick={() =>
                sync.set({
                  pinned: pinned === group ? null : group,
                  highlighted: group
                })
              }
            >
              <svg
                class="det-curve-swatch"
                width="18"
                height="8"
                aria-hidden="true"
              >
                <line
                  x1="0"
                  x2="18"
                  y1="4"
                  y2="4"
                  stroke={colourOf(look.colour, palette)}
                  stroke-width={look.width}
                  stroke-dasharray={look.dash?.join(' ')}
                  opacity={look.alpha}
                />
              </svg>
              <span class="det-curve-label">{shortened(series.label)}</span>
              {series.detail && (
                <span class="det-curve-detail">{shortened(series.detail)}</span>
              )}
              <b class="det-curve-value">
                {text(follows ? values.get(each) : lastValue(each))}
              </b>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

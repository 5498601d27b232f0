/** Which charts a board shows, in which order, and which are drawn as one. Pure. */

import { type BoardState, chartKey } from './boardState';
import type { ChartData, Series } from './series';

/** Metrics that are drawn together are told apart by colours up to so many curves. */
const COLOURS = 8;

export interface Arranged {
  readonly pinned: readonly ChartData[];
  readonly others: readonly ChartData[];
  readonly hidden: readonly ChartData[];
}

export function arrange(
  charts: readonly ChartData[],
  state: BoardState
): Arranged {
  const joined = mergeAll(charts, state.merged);
  const place = new Map(state.order.map((key, at) => [key, at]));
  const sorted = joined
    .map((chart, at) => ({ chart, at, wanted: place.get(chart.key) }))
    .sort(
      (one, other) =>
        (one.wanted ?? place.size + one.at) -
        (other.wanted ?? place.size + other.at)
    )
    .map(({ chart }) => chart);
  const words = state.find.trim().toLowerCase();
  const hidden = sorted.filter(({ key }) => state.hidden.includes(key));
  const shown = sorted.filter(
    chart =>
      !hidden.includes(chart) && chart.title.toLowerCase().includes(words)
  );
  const isPinned = ({ key }: ChartData) => state.pinned.includes(key);
  return {
    pinned: shown
      .filter(isPinned)
      .sort(
        (one, other) =>
          state.pinned.indexOf(one.key) - state.pinned.indexOf(other.key)
      ),
    others: shown.filter(chart => !isPinned(chart)),
    hidden
  };
}

/** Put charts together; one that the address names and that does not exist counts for nothing. */
function mergeAll(
  charts: readonly ChartData[],
  merged: BoardState['merged']
): ChartData[] {
  const byKey = new Map(charts.map(chart => [chart.key, chart]));
  const taken = new Set<string>();
  const made = new Map<string, ChartData>();
  for (const keys of merged) {
    const parts = keys.flatMap(key =>
      taken.has(key) ? [] : (byKey.get(key) ?? [])
    );
    const [first] = parts;
    if (first && parts.length > 1) {
      parts.forEach(({ key }) => taken.add(key));
      made.set(first.key, mergeCharts(parts));
    }
  }
  return charts.flatMap(chart => {
    const whole = made.get(chart.key);
    return whole ? [whole] : taken.has(chart.key) ? [] : [chart];
  });
}

/** Several metrics in one chart. */
export function mergeCharts(parts: readonly ChartData[]): ChartData {
  const curves = parts.reduce((sum, { series }) => sum + series.length, 0);
  const groups = new Set(
    parts.flatMap(({ series }) => series.map(({ group, key }) => group ?? key))
  );
  // Of a single trial each metric has a colour; of several each trial keeps its own, and a dash tells metrics apart.
  const byMetric = groups.size <= 1 || curves <= COLOURS;
  let next = 0;
  const series = parts.flatMap((chart, at) =>
    chart.series.map((each): Series => ({
      ...each,
      key: `${chart.key} ${each.key}`,
      label: labelIn(chart, each),
      colour: byMetric ? next++ : each.colour + 8 * at
    }))
  );
  return {
    key: chartKey(parts.map(({ key }) => key).join(' + ')),
    title: parts.map(({ title }) => title).join(' + '),
    unit: 'value',
    series
  };
}

function labelIn({ title }: ChartData, { label }: Series): string {
  return label.includes(title) ? label : `${title}, ${label}`;
}

/** The parts of a merged chart; null of one that is not merged. */
export function partsOf(
  chart: ChartData,
  merged: BoardState['merged']
): readonly string[] | null {
  return merged.find(keys => chartKey(keys.join(' + ')) === chart.key) ?? null;
}

/** The order of all charts once one has moved to the place of another. */
export function movedTo(
  charts: readonly ChartData[],
  key: string,
  place: number
): string[] {
  const others = charts.map(chart => chart.key).filter(each => each !== key);
  const at = Math.min(Math.max(place, 0), others.length);
  return [...others.slice(0, at), key, ...others.slice(at)];
}

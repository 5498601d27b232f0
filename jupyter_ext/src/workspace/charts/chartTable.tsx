/** What a chart shows, as a table: for screen readers, and to be copied. */

import { formatValue } from '../../shared/format';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import type { PlotState } from './curvePlot';
import { lastValue } from './hover';
import type { Drawn } from './prepare';
import { xText, xTitle } from './ticks';

export interface ChartTableProps {
  readonly title: string;
  readonly state: PlotState;
  readonly format?: (value: number) => string;
  readonly onClose: () => void;
}

export function ChartTable({ title, state, format, onClose }: ChartTableProps) {
  const { axis, drawn } = state;
  const text = (value: number | null) =>
    value !== null && Number.isFinite(value) && format
      ? format(value)
      : formatValue(value);
  return (
    <Dialog
      title={title}
      wide
      onClose={onClose}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <table class="det-grid">
        <thead>
          <tr>
            <th scope="col">Curve</th>
            <th scope="col" class="det-number">
              Last value
            </th>
            <th scope="col" class="det-number">
              at {xTitle(axis, null)}
            </th>
            <th scope="col" class="det-number">
              Smallest
            </th>
            <th scope="col" class="det-number">
              Largest
            </th>
          </tr>
        </thead>
        <tbody>
          {drawn.toReversed().map(each => {
            const [least, most] = extremes(each);
            return (
              <tr key={each.series.key}>
                <th scope="row" class="det-curve-cell">
                  {each.series.label}
                  {each.series.detail && (
                    <span class="det-curve-detail"> {each.series.detail}</span>
                  )}
                </th>
                <td class="det-number">{text(lastValue(each))}</td>
                <td class="det-number">
                  {each.x.length > 0 ? xText(axis, each.x.at(-1)!) : '—'}
                </td>
                <td class="det-number">{text(least)}</td>
                <td class="det-number">{text(most)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Dialog>
  );
}

/** The smallest and the largest value that was reported. */
function extremes({ series }: Drawn): [number | null, number | null] {
  let [least, most] = [Infinity, -Infinity];
  for (const values of [
    series.values,
    series.band?.minimum ?? [],
    series.band?.maximum ?? []
  ]) {
    for (const value of values) {
      if (value !== null && !Number.isNaN(value)) {
        least = Math.min(least, value);
        most = Math.max(most, value);
      }
    }
  }
  return least > most ? [null, null] : [least, most];
}

/** What a trial uses of its machine as charts, on the axes of its metrics. Pure. */

import { systemPanels } from '../../shared/systemFacts';
import type { SystemSample } from '../../shared/model';
import { chartKey } from './boardState';
import { placesOfTimes, type TrialAxes } from './clock';
import type { ChartData, Series, Value } from './series';

const LEAST_BYTES = 1000;

/** A chart for each quantity that was measured. Where nothing was measured for long there is a gap. */
export function systemCharts(
  samples: readonly SystemSample[],
  axes: TrialAxes
): ChartData[] {
  const begin = samples[0]?.time ?? 0;
  return systemPanels(samples).map(({ title, lines, format, top }) => ({
    key: chartKey(`system ${title}`),
    title,
    unit: title,
    format,
    // Shares have an end: half of a processor is to look like half. There is no part of a byte.
    least: [0, /^(CPU|GPU)$/.test(title) ? top : LEAST_BYTES] as const,
    series: lines.map(({ label, stretches }, index): Series => {
      const times: number[] = [];
      const values: Value[] = [];
      stretches.forEach((stretch, at) => {
        if (at > 0) {
          times.push(begin + (stretch[0]?.[0] ?? 0));
          values.push(null);
        }
        for (const [seconds, value] of stretch) {
          times.push(begin + seconds);
          values.push(value);
        }
      });
      return {
        key: `${title} ${label}`,
        label: label || title,
        colour: index,
        look: 'plain',
        x: placesOfTimes(axes, times),
        values
      };
    })
  }));
}

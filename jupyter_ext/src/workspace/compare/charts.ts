/** Charts in which each experiment has a colour. Pure. */

import { shortened } from '../../shared/format';
import type { SystemSample } from '../../shared/model';
import { shortName } from '../../shared/paths';
import { isValidation, panelOf } from '../../shared/plotData';
import { trialNumber } from '../../shared/trialNumbers';
import { lengthsOf } from '../charts/clock';
import { axesOfTrials, chartsOf, type CurveFacts } from '../charts/curveSeries';
import type { ChartData, Series } from '../charts/series';
import { systemCharts } from '../charts/systemSeries';
import type { TrialData } from './load';
import type { Side } from './rows';

/** What an experiment is called in a legend. */
export function sideLabel({ compared, trial }: Side): string {
  const { id, detail, trials } = compared;
  const which =
    trial !== null && trials.length > 1 ? `, trial ${trialNumber(trial)}` : '';
  return `${shortName(id)} ${shortened(detail.name)}${which}`.trim();
}

/** A chart for each metric that any of the experiments has. */
export function comparedCharts(
  sides: readonly Side[],
  data: readonly TrialData[]
): ChartData[] {
  return merged(
    sides,
    side => {
      const own = data.find(({ id }) => id === side.compared.id);
      return own ? chartsOf(own.curves, factsOf(side, own)) : [];
    },
    ({ source }) =>
      source?.kind === 'training' && !isValidation(source) ? ', training' : ''
  );
}

/** What the trials used of their machines. */
export function comparedSystem(
  sides: readonly Side[],
  data: readonly TrialData[],
  samples: ReadonlyArray<readonly SystemSample[]>
): ChartData[] {
  return merged(
    sides,
    side => {
      const at = data.findIndex(({ id }) => id === side.compared.id);
      const own = data[at];
      if (!own || !samples[at] || samples[at].length === 0) {
        return [];
      }
      const axes = axesOfTrials(factsOf(side, own), [own.trial.id]);
      return systemCharts(samples[at], axes.get(own.trial.id)!);
    },
    ({ label }, { title }) => (label === title ? '' : `, ${label}`)
  );
}

function factsOf({ compared }: Side, { trial, clocks }: TrialData): CurveFacts {
  const { detail } = compared;
  return {
    trials: [trial],
    bestId: null,
    metric: detail.metric,
    clocks,
    lengths: lengthsOf(detail.config)
  };
}

/** Charts of the same key become one; each experiment has its colour and name in it. */
function merged(
  sides: readonly Side[],
  chartsOfSide: (side: Side) => ChartData[],
  suffix: (series: Series, chart: ChartData) => string
): ChartData[] {
  const found = new Map<string, { chart: ChartData; series: Series[] }>();
  const ofSides = sides.map(chartsOfSide);
  const titled = ofSides.map(
    charts => new Map(charts.map(chart => [chart.title, chart]))
  );
  ofSides.forEach((charts, colour) => {
    const side = sides[colour]!;
    const name = sideLabel(side);
    for (const own of charts) {
      // An experiment with a validation alone has its curve beside those of the others.
      const panel = panelOf(own.title);
      const shared = titled.flatMap(titles => titles.get(panel) ?? [])[0];
      const chart =
        shared === undefined || titled[colour]!.has(panel) ? own : shared;
      const known = found.get(chart.key) ?? { chart, series: [] };
      known.series.push(
        ...own.series.map((series): Series => ({
          ...series,
          key: `${side.compared.id} ${series.key}`,
          group: String(side.compared.id),
          label: name + suffix(series, own),
          look: series.look === 'faint' ? 'faint' : 'plain',
          colour
        }))
      );
      found.set(chart.key, known);
    }
  });
  return [...found.values()].map(({ chart, series }) => ({ ...chart, series }));
}

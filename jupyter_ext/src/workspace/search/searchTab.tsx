/** The Search tab of an experiment: what its trials say about its hyperparameters. */

import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks';

import { isTerminal } from '../../shared/model';
import { trialSummaries } from '../../shared/requests';
import { isLogarithmic } from '../../shared/searchFacts';
import { useApi, useParameter } from '../app/context';
import type { TabProps } from '../charts/chartsTab';
import { useLoad } from '../data/useLoad';
import { Select } from '../parts/field';
import { Empty, Loading } from '../parts/state';
import { FilterState, ParallelSection, ScatterSection } from './commonPlots';
import { ImportanceSection } from './importance';
import {
  HistoryPlot,
  PairPlots,
  ParetoPlot,
  SlicePlots,
  StagesPlot
} from './searchPlots';
import { clipped } from './shapes';
import {
  analysedTrials,
  smallerIsBetter,
  type TrialSummary,
  type Which
} from './trials';
import { choicesOf, useAnalysis } from './useAnalysis';

const MANY = 200;
const SOON = 1500;
const LATER = 10_000;
const MOST_NAMED = 12;
const NOTHING: readonly TrialSummary[] = [];

export function SearchTab({ view }: TabProps) {
  const { experiment, trials, id } = view;
  const api = useApi();
  const [which, setWhich] = useParameter('value', 'best');
  const loaded = useLoad(`summaries ${id}`, signal =>
    trialSummaries(api, [id], signal)
  );
  const summaries = loaded.data;
  const ended = trials.filter(({ state }) => isTerminal(state)).length;
  useSoon(ended, trials.length > MANY ? LATER : SOON, () => loaded.reload());
  const analysed = useMemo(
    () =>
      experiment === null
        ? []
        : analysedTrials(
            experiment,
            trials,
            summaries ?? NOTHING,
            which as Which
          ),
    [experiment, trials, summaries, which]
  );
  const config = JSON.stringify(experiment?.config.hyperparameters ?? null);
  const isLog = useCallback(
    (name: string) => isLogarithmic(experiment, name),
    [config]
  );
  const analysis = useAnalysis(
    analysed,
    isLog,
    experiment?.metric ?? '',
    name => smallerIsBetter(name, experiment)
  );
  if (experiment === null) {
    return <Loading />;
  }
  const { metric, dimensions, filtered } = analysis;
  if (trials.length < 2) {
    return (
      <Empty title="There is nothing to compare yet.">
        These plots need at least two trials; this experiment has{' '}
        {trials.length === 0 ? 'none' : 'a single one'}. A search over
        hyperparameters makes several.
      </Empty>
    );
  }
  const bare =
    trials.length - analysed.filter(({ metrics }) => metrics.size > 0).length;
  return (
    <div class="det-search-tab">
      <div class="det-plot-tools">
        {metric !== null && (
          <Select
            label="Metric"
            value={metric.id}
            choices={choicesOf(dimensions.metrics)}
            onChange={analysis.setMetric}
          />
        )}
        <Select
          label="Value"
          value={which}
          choices={[
            { value: 'best', label: 'Best of each trial' },
            { value: 'last', label: 'Last of each trial' }
          ]}
          onChange={setWhich}
        />
        <span class="det-plot-hint">
          {`${trials.length.toLocaleString('en')} trials`}
          {bare > 0 && `, ${bare.toLocaleString('en')} without a value yet`}
        </span>
      </div>
      <FilterState analysis={analysis} />
      {metric === null ? (
        <Empty title="No trial has a value yet.">
          The plots appear with the first validation.
        </Empty>
      ) : (
        <>
          <h2 class="det-plot-heading">Overview</h2>
          <div class="det-plot-grid det-plot-grid-large">
            <HistoryPlot analysis={analysis} metric={metric} />
            <ImportanceSection
              id={id}
              metric={metric.name}
              ended={ended}
              analysis={analysis}
            />
          </div>
          <h2 class="det-plot-heading">All values</h2>
          <ParallelSection analysis={analysis} />
          <div class="det-plot-grid det-plot-grid-large">
            <ScatterSection analysis={analysis} />
            <ParetoPlot analysis={analysis} view={view} />
          </div>
          {dimensions.hyperparameters.length > 0 && (
            <>
              <h2 class="det-plot-heading">Each hyperparameter</h2>
              <SlicePlots analysis={analysis} metric={metric} />
            </>
          )}
          {dimensions.hyperparameters.length > 1 && (
            <>
              <h2 class="det-plot-heading">Two hyperparameters</h2>
              <PairPlots analysis={analysis} metric={metric} />
            </>
          )}
          <h2 class="det-plot-heading">Training</h2>
          <StagesPlot analysis={analysis} metric={metric} view={view} />
        </>
      )}
      {filtered.length === 0 && trials.length > 0 && (
        <p class="det-plot-note">No trial passes the filters.</p>
      )}
      {dimensions.constant.length > 0 && (
        <p class="det-plot-note">
          {`The same in all trials: ${namesText(dimensions.constant)}.`}
        </p>
      )}
    </div>
  );
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).map(name => clipped(name, 40));
  const more = names.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Call something after a change, at most once in so long. */
function useSoon(value: number, milliseconds: number, call: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const before = useRef(value);
  useEffect(() => {
    if (value !== before.current) {
      before.current = value;
      timer.current ??= setTimeout(() => {
        timer.current = null;
        call();
      }, milliseconds);
    }
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current ?? undefined), []);
}

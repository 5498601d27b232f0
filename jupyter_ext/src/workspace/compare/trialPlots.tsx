/** Parallel coordinates and scatter over the trials of all experiments. */

import { useCallback, useMemo } from 'preact/hooks';

import { shortName } from '../../shared/paths';
import { isLogarithmic } from '../../shared/searchFacts';
import { useParameter } from '../app/context';
import { Checkbox, Select } from '../parts/field';
import {
  FilterState,
  ParallelSection,
  ScatterSection
} from '../search/commonPlots';
import { analysedTrials, smallerIsBetter } from '../search/trials';
import { choicesOf, useAnalysis } from '../search/useAnalysis';
import type { Side } from './rows';

export function TrialPlots({ sides }: { sides: readonly Side[] }) {
  const [only, setOnly] = useParameter('only');
  const [colour, setColour] = useParameter('colour');
  const best = only === 'shown';
  const trials = useMemo(
    () =>
      sides.flatMap(({ compared, trial }, group) =>
        analysedTrials(
          compared.detail,
          best
            ? compared.trials.filter(({ id }) => id === trial?.id)
            : compared.trials,
          compared.summaries,
          'best',
          group,
          shortName(compared.id)
        )
      ),
    [sides, best]
  );
  const isLog = useCallback(
    (name: string) =>
      sides.some(({ compared }) => isLogarithmic(compared.detail, name)),
    [sides]
  );
  const first = sides[0]?.compared.detail ?? null;
  const analysis = useAnalysis(
    trials,
    isLog,
    first?.metric ?? '',
    name =>
      smallerIsBetter(
        name,
        sides.find(({ compared }) => compared.detail.metric === name)?.compared
          .detail ?? first
      ),
    colour !== 'metric'
  );
  const { metric, dimensions } = analysis;
  return (
    <>
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
          label="Colour by"
          value={colour}
          choices={[
            { value: '', label: 'Experiment' },
            { value: 'metric', label: 'Metric' }
          ]}
          onChange={setColour}
        />
        <Checkbox
          label="Only the trial shown of each experiment"
          checked={best}
          onChange={checked => setOnly(checked ? 'shown' : '')}
        />
      </div>
      <FilterState analysis={analysis} />
      <ParallelSection analysis={analysis} />
      <ScatterSection analysis={analysis} />
    </>
  );
}

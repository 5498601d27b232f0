/** Several experiments compared: tables, curves, trials, configuration, code and the use of their machines. */

import { useMemo } from 'preact/hooks';

import type { ExperimentId } from '../../shared/model';
import { shortName } from '../../shared/paths';
import { trialNumber } from '../../shared/trialNumbers';
import { addressText, HOME } from '../app/address';
import { useAddress, useApi, useParameter, useTitle } from '../app/context';
import { useWorkspace } from '../app/context';
import { ChartBoard } from '../charts/chartBoard';
import { useLoad } from '../data/useLoad';
import { IconButton } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Link } from '../parts/link';
import { Empty, Loading } from '../parts/state';
import { TabList } from '../parts/tabs';
import { clipped } from '../search/shapes';
import { comparedCharts, comparedSystem } from './charts';
import { CodeDiff, ConfigurationDiff } from './differences';
import {
  chosenText,
  type Compared,
  loadCurves,
  loadExperiments,
  loadSystem,
  type Missing,
  readChosen,
  shownTrial
} from './load';
import type { Side } from './rows';
import { CompareTables } from './tables';
import { TrialPlots } from './trialPlots';

const PARTS = [
  ['table', 'Table'],
  ['charts', 'Charts'],
  ['trials', 'Trials'],
  ['configuration', 'Configuration'],
  ['code', 'Code'],
  ['system', 'System']
] as const;
type Part = (typeof PARTS)[number][0];

/** Of more experiments than these, curves cannot be told apart and the requests are too many. */
export const MOST_COMPARED = 50;

export function ComparePage({ ids }: { ids: readonly ExperimentId[] }) {
  const api = useApi();
  const taken = ids.slice(0, MOST_COMPARED);
  const { data, error, ...loaded } = useLoad(
    `compare ${taken.join(',')}`,
    signal => loadExperiments(api, taken, signal),
    taken
  );
  useTitle(
    `Compare ${clipped(taken.map(shortName).join(', '), 40)}`,
    `Comparison of ${ids.length} experiments`
  );
  if (data === null) {
    return error ? (
      <div class="det-page-body">
        <ErrorBox
          title="The experiments could not be loaded."
          error={error}
          onRetry={() => loaded.reload()}
        />
      </div>
    ) : (
      <Loading rows={8} label="Loading the experiments…" />
    );
  }
  const left = ids.length - taken.length;
  return (
    <div class="det-page-body det-compare">
      <div class="det-page-head">
        <h1 class="det-compare-title">
          {`Comparison of ${data.experiments.length} ${data.experiments.length === 1 ? 'experiment' : 'experiments'}`}
        </h1>
      </div>
      <Absent missing={data.missing} />
      {left > 0 && (
        <p class="det-plot-note" role="status">
          {`Only the first ${MOST_COMPARED} experiments are compared; ${left.toLocaleString('en')} more are left out.`}
        </p>
      )}
      {data.experiments.length === 0 ? (
        <Empty title="None of these experiments exists.">
          <Link to={HOME}>All experiments</Link>
        </Empty>
      ) : (
        <Comparison experiments={data.experiments} ids={ids} />
      )}
    </div>
  );
}

function Absent({ missing }: { missing: readonly Missing[] }) {
  return missing.length === 0 ? null : (
    <p class="det-plot-note" role="status">
      {missing
        .map(
          ({ id, text }) => `Experiment ${shortName(id)} is left out: ${text}.`
        )
        .join(' ')}
    </p>
  );
}

function Comparison({
  experiments,
  ids
}: {
  experiments: readonly Compared[];
  ids: readonly ExperimentId[];
}) {
  const { place, parameters } = useAddress();
  const [partText] = useParameter('show', 'table');
  const [chosenTrials, setChosen] = useParameter('chosen');
  const part: Part = PARTS.find(([name]) => name === partText)?.[0] ?? 'table';
  const sides = useMemo(() => {
    const chosen = readChosen(chosenTrials);
    return experiments.map((compared): Side => ({
      compared,
      trial: shownTrial(compared, chosen.get(String(compared.id)))
    }));
  }, [experiments, chosenTrials]);
  const choose = (side: Side, number: number) => {
    const chosen = readChosen(chosenTrials);
    const best = shownTrial(side.compared, undefined);
    if (best !== null && trialNumber(best) === number) {
      chosen.delete(String(side.compared.id));
    } else {
      chosen.set(String(side.compared.id), number);
    }
    setChosen(chosenText(chosen));
  };
  return (
    <>
      <Chips experiments={experiments} ids={ids} />
      <TabList
        label="Parts of the comparison"
        current={part}
        tabs={PARTS.map(([name, label]) => ({
          name,
          label,
          address: addressText(place, {
            ...parameters,
            show: name === 'table' ? '' : name
          })
        }))}
      />
      <div class="det-compare-part">
        {part === 'table' && <CompareTables sides={sides} onTrial={choose} />}
        {part === 'charts' && <Curves sides={sides} />}
        {part === 'trials' && <TrialPlots sides={sides} />}
        {part === 'configuration' && (
          <ConfigurationDiff experiments={experiments} />
        )}
        {part === 'code' && <CodeDiff experiments={experiments} />}
        {part === 'system' && <System sides={sides} />}
      </div>
    </>
  );
}

/** The experiments by colour and name; each can be taken out. */
function Chips({
  experiments,
  ids
}: {
  experiments: readonly Compared[];
  ids: readonly ExperimentId[];
}) {
  const { host } = useWorkspace();
  const { parameters } = useAddress();
  return (
    <ul class="det-compare-chips" aria-label="Experiments compared">
      {experiments.map(({ id, detail }, at) => (
        <li key={String(id)} class="det-compare-chip">
          <span
            class="det-compare-colour"
            data-colour={(at % 8) + 1}
            aria-hidden="true"
          />
          <span title={clipped(detail.name, 300)}>
            {`${shortName(id)} ${clipped(detail.name, 30)}`}
          </span>
          {experiments.length > 1 && (
            <IconButton
              icon="close"
              label={`Take ${shortName(id)} out of the comparison`}
              onClick={() =>
                host.navigation.open(
                  addressText(
                    { page: 'compare', ids: ids.filter(each => each !== id) },
                    parameters
                  )
                )
              }
            />
          )}
        </li>
      ))}
    </ul>
  );
}

function useShown(sides: readonly Side[]) {
  const shown = sides.flatMap(({ compared, trial }) =>
    trial === null ? [] : [{ id: compared.id, trial }]
  );
  const key = shown.map(({ id, trial }) => `${id}:${trial.id}`).join(',');
  return { shown, key };
}

function useCurvesOf(sides: readonly Side[]) {
  const api = useApi();
  const { shown, key } = useShown(sides);
  return useLoad(
    `curves of ${key}`,
    signal => loadCurves(api, shown, signal),
    shown.map(({ id }) => id)
  );
}

function Curves({ sides }: { sides: readonly Side[] }) {
  const { data, error } = useCurvesOf(sides);
  const charts = useMemo(
    () => (data === null ? [] : comparedCharts(sides, data)),
    [sides, data]
  );
  if (data === null) {
    return error ? (
      <ErrorBox title="The curves could not be loaded." error={error} />
    ) : (
      <Loading label="Loading the curves…" />
    );
  }
  return charts.length === 0 ? (
    <Empty title="None of these experiments has reported a metric yet." />
  ) : (
    <ChartBoard charts={charts} filePrefix="comparison" />
  );
}

function System({ sides }: { sides: readonly Side[] }) {
  const api = useApi();
  const { shown, key } = useShown(sides);
  const curves = useCurvesOf(sides);
  const { data, error } = useLoad(
    `system of ${key}`,
    signal => loadSystem(api, shown, signal),
    shown.map(({ id }) => id)
  );
  const charts = useMemo(
    () =>
      data === null || curves.data === null
        ? []
        : comparedSystem(sides, curves.data, data),
    [sides, data, curves.data]
  );
  if (data === null || curves.data === null) {
    const failed = error ?? curves.error;
    return failed ? (
      <ErrorBox
        title="The use of the machines could not be loaded."
        error={failed}
      />
    ) : (
      <Loading label="Loading the use of the machines…" />
    );
  }
  return charts.length === 0 ? (
    <Empty title="Nothing was measured of what these trials used." />
  ) : (
    <ChartBoard charts={charts} parameter="system." filePrefix="comparison" />
  );
}

/** The charts of an experiment: metrics, what its trials use of their machines, and what they have logged. */

import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';

import { bestTrial } from '../../shared/facts';
import type { ExperimentFeed } from '../../shared/feed';
import { hparamTexts } from '../../shared/hparams';
import type { ExperimentView, Trial } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { numberOf, trialNumber } from '../../shared/trialNumbers';
import { useApi, useParameter } from '../app/context';
import { ErrorBox } from '../parts/errorBox';
import { Empty, Loading } from '../parts/state';
import { ChartBoard, type ChartSection } from './chartBoard';
import { batchesWithin, lengthsOf } from './clock';
import { axesOfTrials, chartsOf, type CurveFacts } from './curveSeries';
import { fullSeries } from './fullSeries';
import { MediaPart } from './mediaPart';
import type { Axis, ChartData, Zoom } from './series';
import { isCoarse, withStretch } from './stretch';
import { systemCharts } from './systemSeries';
import {
  choiceText,
  chosenTrials,
  DEFAULT_CHOICE,
  MOST_TRIALS,
  readChoice
} from './trialChoice';
import { TrialPicker } from './trialPicker';
import { useClocks, useCurvesOf, useStretch } from './useCurves';

export interface TabProps {
  readonly view: ExperimentView;
  readonly feed: ExperimentFeed;
}

export function ChartsTab({ view, feed }: TabProps) {
  if (view.experiment === null) {
    return <Loading label="Loading the charts…" />;
  }
  return (
    <div class="det-charts-tab">
      <Curves key={String(view.id)} view={view} />
      <MediaPart view={view} feed={feed} />
    </div>
  );
}

function Curves({ view }: { view: ExperimentView }) {
  const api = useApi();
  const [text, setText] = useParameter('trials');
  const { id, trials } = view;
  const smallerIsBetter = view.experiment?.smaller_is_better ?? true;
  const many = trials.length > MOST_TRIALS;
  const choice = readChoice(text) ?? (many ? DEFAULT_CHOICE : null);
  const wanted = useSame(
    choice === null ? trials : chosenTrials(trials, choice, smallerIsBetter)
  );
  const own = useCurvesOf(view, many ? wanted : null, view.curves);
  const ids = useMemo(() => new Set(wanted.map(each => each.id)), [wanted]);
  const coarse = useMemo(
    () =>
      many
        ? (own.data ?? [])
        : view.curves.filter(curve => ids.has(curve.trial_id)),
    [many, own.data, view.curves, ids]
  );
  const clocks = useClocks(view, wanted, view.curves);
  const [zoomed, setZoomed] = useState<{ zoom: Zoom; axis: Axis } | null>(null);
  const onZoom = useCallback(
    (zoom: Zoom, axis: Axis) => setZoomed({ zoom, axis }),
    []
  );
  const config = view.experiment?.config;
  const lengths = useMemo(() => lengthsOf(config ?? {}), [config]);
  // When a trial ends, its last batch has a time.
  const ends = trials.map(({ ended }) => ended).join();
  const facts: CurveFacts = {
    trials,
    bestId: bestTrial(view)?.id ?? null,
    metric: view.experiment?.metric ?? '',
    clocks,
    lengths
  };
  const axes = useMemo(
    () => axesOfTrials(facts, [...ids]),
    [clocks, ids, lengths, ends]
  );
  const stretch = stretchOf(zoomed, [...axes.values()]);
  const fine = useStretch(view, wanted, stretch, isCoarse(coarse));
  const curves = useMemo(
    () => (fine && stretch ? withStretch(coarse, fine, stretch) : coarse),
    [coarse, fine, stretch?.[0], stretch?.[1]]
  );
  const charts = useMemo(
    () => chartsOf(curves, facts),
    [curves, clocks, facts.bestId, facts.metric, trials.length, lengths, ends]
  );
  const sections = useSystem(view, facts);
  const loadFull = useCallback(
    (chart: ChartData, signal: AbortSignal) =>
      fullSeries(
        api,
        axes,
        new Set(coarse.map(({ name }) => name)),
        chart,
        signal
      ),
    [api, axes, coarse]
  );
  const details = useMemo(() => hparamTexts(wanted).own, [wanted]);
  if (own.error !== null && own.data === null) {
    return (
      <ErrorBox title="The curves could not be loaded." error={own.error} />
    );
  }
  if (many && own.data === null) {
    return <Loading label="Loading the curves…" />;
  }
  if (charts.length === 0 && sections.length === 0) {
    return <Empty title={nothingText(view)} />;
  }
  return (
    <ChartBoard
      charts={charts}
      sections={sections}
      loadFull={loadFull}
      filePrefix={`experiment_${id}`}
      onZoom={onZoom}
      tools={
        trials.length > 1 && (
          <TrialPicker
            trials={trials}
            shown={wanted}
            details={details}
            choice={choice}
            onChange={next => setText(next === null ? '' : choiceText(next))}
          />
        )
      }
    />
  );
}

function useSystem(view: ExperimentView, facts: CurveFacts): ChartSection[] {
  const { system, trials } = view;
  return useMemo(() => {
    if (system === null || system.samples.length === 0) {
      return [];
    }
    const axes = axesOfTrials(facts, [system.trialId]).get(system.trialId)!;
    const charts = systemCharts(system.samples, axes);
    const number = numberOf(trials, system.trialId);
    const title = trials.length > 1 ? `System of trial ${number}` : 'System';
    return charts.length > 0 ? [{ title, charts }] : [];
  }, [system, facts.clocks, facts.lengths, trials.length]);
}

/** The batches that a zoom of any axis shows, of whichever trial most. */
function stretchOf(
  zoomed: { zoom: Zoom; axis: Axis } | null,
  axes: ReadonlyArray<Parameters<typeof batchesWithin>[0]>
): [number, number] | null {
  if (zoomed === null || zoomed.zoom === null) {
    return null;
  }
  const { axis, zoom } = zoomed;
  const found = axes.flatMap(each => {
    const stretch = batchesWithin(each, axis, zoom);
    return stretch === null ? [] : [stretch];
  });
  return found.length === 0
    ? null
    : [
        Math.min(...found.map(([from]) => from)),
        Math.max(...found.map(([, to]) => to))
      ];
}

function nothingText({ experiment }: ExperimentView): string {
  return experiment !== null && isTerminal(experiment.state)
    ? 'This experiment has reported no metrics.'
    : 'There are no metrics yet: charts appear with the first report.';
}

/** The same list as long as the same trials are in it. */
function useSame(trials: readonly Trial[]): readonly Trial[] {
  const [kept, setKept] = useState(trials);
  const key = (list: readonly Trial[]) =>
    list.map(each => `${each.id} ${trialNumber(each)}`).join(',');
  const same = key(kept) === key(trials);
  useEffect(() => {
    if (!same) {
      setKept(trials);
    }
  }, [same, trials]);
  return same ? kept : trials;
}

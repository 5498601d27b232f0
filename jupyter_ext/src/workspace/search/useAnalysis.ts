/** What all plots of some trials share: the metric, filters, order of axes, who is pointed at. Kept in the address. */

import { useMemo } from 'preact/hooks';

import { formatValue } from '../../shared/format';
import { useParameter } from '../app/context';
import type { Choice } from '../parts/field';
import { Hover } from './hover';
import type { PlotTable } from './plotTable';
import type { Colouring } from './scenes';
import { clipped } from './shapes';
import {
  type AnalysedTrial,
  type Brushes,
  brushesText,
  type Dimension,
  type Dimensions,
  dimensionsOf,
  NUMBER,
  passing,
  readBrushes,
  valueOf
} from './trials';

/** Of more hyperparameters the others are drawn when they are chosen. */
export const MOST_AXES = 11;
const MOST_TOLD = 12;
const LONGEST_LINE = 80;

export interface Analysis {
  readonly trials: readonly AnalysedTrial[];
  /** Trials that pass the filters. */
  readonly filtered: readonly AnalysedTrial[];
  readonly dimensions: Dimensions;
  readonly byId: ReadonlyMap<string, Dimension>;
  /** Null where no trial has a value of any metric. */
  readonly metric: Dimension | null;
  readonly setMetric: (id: string) => void;
  readonly smaller: boolean;
  readonly colouring: Colouring;
  readonly brushes: Brushes;
  readonly setBrushes: (brushes: Brushes) => void;
  readonly axes: readonly Dimension[];
  readonly setAxes: (ids: readonly string[]) => void;
  readonly hover: Hover;
  readonly tell: (key: string) => readonly string[];
  readonly table: (dimensions: readonly Dimension[]) => PlotTable;
}

export function useAnalysis(
  trials: readonly AnalysedTrial[],
  isLog: (name: string) => boolean,
  first: string,
  smallerIsBetter: (name: string) => boolean,
  byGroup = false
): Analysis {
  const [metricId, setMetric] = useParameter('metric');
  const [brushText, setBrushText] = useParameter('filter');
  const [axesText, setAxesText] = useParameter('axes');
  const hover = useMemo(() => new Hover(), []);
  const dimensions = useMemo(
    () => dimensionsOf(trials, isLog, [first]),
    [trials, isLog, first]
  );
  const byId = useMemo(() => {
    const { hyperparameters, metrics } = dimensions;
    return new Map(
      [...hyperparameters, ...metrics, NUMBER].map(each => [each.id, each])
    );
  }, [dimensions]);
  const chosen = byId.get(metricId);
  const metric =
    chosen?.kind === 'metric' ? chosen : (dimensions.metrics[0] ?? null);
  const brushes = useMemo(() => readBrushes(brushText), [brushText]);
  const filtered = useMemo(
    () =>
      Object.keys(brushes).length === 0
        ? trials
        : trials.filter(passing(brushes, byId)),
    [trials, brushes, byId]
  );
  const axes = useMemo(
    () => axesOf(axesText, byId, dimensions, metric),
    [axesText, byId, dimensions, metric]
  );
  const smaller = metric === null || smallerIsBetter(metric.name);
  const colouring = useMemo(
    (): Colouring =>
      metric === null || byGroup
        ? { by: 'group' }
        : { by: 'value', dimension: metric, smaller },
    [metric, smaller, byGroup]
  );
  const byKey = useMemo(
    () => new Map(trials.map(trial => [trial.key, trial])),
    [trials]
  );
  return {
    trials,
    filtered,
    dimensions,
    byId,
    metric,
    setMetric,
    smaller,
    colouring,
    brushes,
    setBrushes: next => setBrushText(brushesText(next)),
    axes,
    setAxes: ids => setAxesText(JSON.stringify(ids)),
    hover,
    tell: key => {
      const trial = byKey.get(key);
      return trial ? linesOf(trial, dimensions, metric) : [];
    },
    table: shown => tableOf(filtered, shown)
  };
}

function axesOf(
  text: string,
  byId: ReadonlyMap<string, Dimension>,
  { hyperparameters }: Dimensions,
  metric: Dimension | null
): Dimension[] {
  const named = idsOf(text).flatMap(id => byId.get(id) ?? []);
  return named.length > 0
    ? [...new Set(named)]
    : [
        ...hyperparameters.slice(0, MOST_AXES),
        ...(metric === null ? [] : [metric])
      ];
}

function idsOf(text: string): string[] {
  try {
    const read = JSON.parse(text || '[]') as unknown;
    return Array.isArray(read)
      ? read.filter((each): each is string => typeof each === 'string')
      : [];
  } catch {
    return []; // typed by hand
  }
}

function linesOf(
  trial: AnalysedTrial,
  { hyperparameters }: Dimensions,
  metric: Dimension | null
): string[] {
  const pairs = hyperparameters
    .slice(0, MOST_TOLD)
    .flatMap(({ name }) =>
      trial.hparams.has(name)
        ? [`${name}: ${formatValue(trial.hparams.get(name))}`]
        : []
    );
  const value = metric === null ? undefined : trial.metrics.get(metric.name);
  const more = hyperparameters.length - MOST_TOLD;
  return [
    trial.label,
    ...(metric === null
      ? []
      : [
          `${metric.name}: ${value === undefined ? 'no value' : formatValue(value)}`
        ]),
    ...pairs,
    ...(more > 0 ? [`and ${more} more`] : [])
  ].map(line => clipped(line, LONGEST_LINE));
}

function tableOf(
  trials: readonly AnalysedTrial[],
  dimensions: readonly Dimension[]
): PlotTable {
  return {
    columns: ['Trial', ...dimensions.map(({ name }) => name)],
    rows: trials.map(trial => [
      trial.label,
      ...dimensions.map(dimension => valueOf(trial, dimension))
    ])
  };
}

/** Dimensions to choose from. */
export function choicesOf(dimensions: readonly Dimension[]): Choice[] {
  return dimensions.map(({ id, name }) => ({
    value: id,
    label: clipped(name, 60)
  }));
}

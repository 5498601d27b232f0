/** Trials as the plots of a search see them: hyperparameters by whole names, and a number for each metric. Pure. */

import type { components } from '../../generated/rest';
import { formatValue } from '../../shared/format';
import { flatHparams } from '../../shared/hparams';
import type { Experiment, ExperimentId, Trial } from '../../shared/model';
import { trialNumber } from '../../shared/trialNumbers';

export type TrialSummary = components['schemas']['TrialSummary'];
type MetricSummary = components['schemas']['MetricSummary'];

/** Which value of a metric counts. */
export type Which = 'best' | 'last';

export interface AnalysedTrial {
  /** The same for the same trial, in no other experiment. */
  readonly key: string;
  readonly experimentId: ExperimentId;
  readonly trialId: number;
  readonly number: number;
  /** `Trial 3`, with its experiment where there are several. */
  readonly label: string;
  readonly state: Trial['state'] | null;
  /** Place of its experiment among those that are shown. */
  readonly group: number;
  readonly hparams: ReadonlyMap<string, unknown>;
  readonly metrics: ReadonlyMap<string, number>;
  /** When its best value was reported, in milliseconds; null where that is not known. */
  readonly at: number | null;
}

/** Something that an axis can show. */
export interface Dimension {
  /** `hp:rate`, `metric:val_loss`, `number`: as it stands in an address. */
  readonly id: string;
  readonly name: string;
  readonly kind: 'hyperparameter' | 'metric' | 'number';
  readonly log: boolean;
}

export const NUMBER: Dimension = {
  id: 'number',
  name: 'Number of the trial',
  kind: 'number',
  log: false
};

const GREATER = new Set(
  'acc accuracy auc auroc f1 precision recall iou dice r2 bleu'.split(' ')
);

type Described = Pick<
  Experiment,
  'id' | 'metric' | 'smaller_is_better' | 'config'
>;

/** Metrics that trials of an experiment are compared by, with whether smaller values are better. */
export function comparedMetrics({
  config,
  metric,
  smaller_is_better: smaller
}: Omit<Described, 'id'>): Array<{ name: string; smaller: boolean }> {
  const { metrics } = (config.searcher ?? {}) as { metrics?: unknown };
  const several = (Array.isArray(metrics) ? metrics : []).flatMap(
    (each: { name?: unknown; smaller_is_better?: unknown } | null) =>
      typeof each?.name === 'string'
        ? [{ name: each.name, smaller: each.smaller_is_better !== false }]
        : []
  );
  return several.length > 0 ? several : [{ name: metric, smaller }];
}

/** Whether smaller values of a metric are better: as the search says, or by the words of its name. */
export function smallerIsBetter(
  name: string,
  experiment: Omit<Described, 'id'> | null
): boolean {
  const compared = experiment === null ? [] : comparedMetrics(experiment);
  const found = compared.find(each => each.name === name);
  const words = name
    .toLowerCase()
    .replace(/^(val_|validation_)/, '')
    .split('_');
  return found ? found.smaller : !words.some(word => GREATER.has(word));
}

/** Trials with what is known of their metrics. */
export function analysedTrials(
  experiment: Described,
  trials: readonly Trial[],
  summaries: readonly TrialSummary[],
  which: Which,
  group = 0,
  prefix = ''
): AnalysedTrial[] {
  const known = new Map(summaries.map(each => [each.trial_id, each]));
  return trials.map(trial => {
    const metrics = metricsOf(
      known.get(trial.id)?.metrics ?? [],
      experiment,
      which
    );
    const best = trial.best_validation;
    if (
      best !== null &&
      (which === 'best' || !metrics.has(experiment.metric))
    ) {
      metrics.set(experiment.metric, Number(best));
    }
    const number = trialNumber(trial);
    const at = Date.parse(trial.best_at ?? trial.ended ?? '');
    return {
      key: `${experiment.id}/${trial.id}`,
      experimentId: experiment.id,
      trialId: trial.id,
      number,
      label: prefix ? `${prefix} trial ${number}` : `Trial ${number}`,
      state: trial.state,
      group,
      hparams: new Map(flatHparams(trial.hparams)),
      metrics,
      at: Number.isNaN(at) ? null : at
    };
  });
}

/** Of a name that both kinds have, the validation's value counts; the training's is called so. */
function metricsOf(
  summaries: readonly MetricSummary[],
  experiment: Described,
  which: Which
): Map<string, number> {
  const validated = new Set(
    summaries
      .filter(({ kind }) => kind === 'validation')
      .map(({ name }) => name)
  );
  const found = new Map<string, number>();
  for (const { kind, name, last, minimum, maximum } of summaries) {
    const smaller = smallerIsBetter(name, experiment);
    const value = which === 'last' ? last : smaller ? minimum : maximum;
    if (value !== null) {
      const twice = kind !== 'validation' && validated.has(name);
      found.set(twice ? `${name} (${kind})` : name, Number(value));
    }
  }
  return found;
}

/** What a trial has in a dimension; undefined where it has nothing. */
export function valueOf(trial: AnalysedTrial, dimension: Dimension): unknown {
  switch (dimension.kind) {
    case 'hyperparameter':
      return trial.hparams.get(dimension.name);
    case 'metric':
      return trial.metrics.get(dimension.name);
    case 'number':
      return trial.number;
  }
}

export interface Dimensions {
  /** Those that differ between trials. */
  readonly hyperparameters: readonly Dimension[];
  readonly metrics: readonly Dimension[];
  /** Names of hyperparameters that are the same in all trials. */
  readonly constant: readonly string[];
}

/** What the axes of these trials can be. `isLog` says which hyperparameters are searched over powers. */
export function dimensionsOf(
  trials: readonly AnalysedTrial[],
  isLog: (name: string) => boolean,
  first: readonly string[] = []
): Dimensions {
  const values = new Map<string, Set<string>>();
  const counts = new Map<string, number>();
  const metrics = new Set<string>();
  for (const trial of trials) {
    for (const [name, value] of trial.hparams) {
      const seen = values.get(name) ?? new Set();
      // More are not needed to say that they differ.
      if (seen.size < 2) {
        values.set(name, seen.add(JSON.stringify(value) ?? 'null'));
      }
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    for (const name of trial.metrics.keys()) {
      metrics.add(name);
    }
  }
  const differs = (name: string) =>
    values.get(name)!.size > 1 || counts.get(name) !== trials.length;
  const names = [...values.keys()];
  const ordered = [...metrics].sort(
    (one, other) =>
      rank(one, first) - rank(other, first) || (one < other ? -1 : 1)
  );
  return {
    hyperparameters: names.filter(differs).map(name => ({
      id: `hp:${name}`,
      name,
      kind: 'hyperparameter',
      log: isLog(name)
    })),
    metrics: ordered.map(name => ({
      id: `metric:${name}`,
      name,
      kind: 'metric',
      log: false
    })),
    constant: names.filter(name => !differs(name))
  };
}

function rank(name: string, first: readonly string[]): number {
  const at = first.indexOf(name);
  return at < 0 ? first.length : at;
}

/** A filter on one axis: from and to, or some of its values by their texts. */
export type Brush = readonly [number, number] | readonly string[];
export type Brushes = Readonly<Record<string, Brush>>;

export function isRange(brush: Brush): brush is readonly [number, number] {
  return typeof brush[0] === 'number';
}

/** What says whether a trial passes the filters of all axes; a filter of an axis that is not there any more takes nothing away. */
export function passing(
  brushes: Brushes,
  dimensions: ReadonlyMap<string, Dimension>
): (trial: AnalysedTrial) => boolean {
  const filters = Object.entries(brushes).flatMap(([id, brush]) => {
    const dimension = dimensions.get(id);
    return dimension === undefined ? [] : [{ dimension, brush }];
  });
  return trial =>
    filters.every(({ dimension, brush }) => {
      const value = valueOf(trial, dimension);
      return isRange(brush)
        ? typeof value === 'number' && value >= brush[0] && value <= brush[1]
        : brush.includes(textOf(value));
    });
}

/** The text of a value among categories. */
export function textOf(value: unknown): string {
  return value === undefined ? 'none' : formatValue(value);
}

/** Filters in an address; what is damaged filters nothing. */
export function readBrushes(text: string): Brushes {
  try {
    const read = JSON.parse(text || '{}') as unknown;
    return Object.fromEntries(
      Object.entries(read ?? {}).filter(([, brush]) => isBrush(brush))
    );
  } catch {
    return {};
  }
}

function isBrush(brush: unknown): brush is Brush {
  return (
    Array.isArray(brush) &&
    brush.length > 0 &&
    (brush.every(each => typeof each === 'string') ||
      (brush.length === 2 && brush.every(each => typeof each === 'number')))
  );
}

export function brushesText(brushes: Brushes): string {
  return Object.keys(brushes).length === 0 ? '' : JSON.stringify(brushes);
}

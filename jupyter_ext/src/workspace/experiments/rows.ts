/** A row of the table, and the values that columns take from it. Pure. */

import type { components } from '../../generated/rest';
import type { Experiment, ExperimentId } from '../../shared/model';

type Schemas = components['schemas'];
export type MetricSummary = Schemas['MetricSummary'];
export type ExperimentNames = Schemas['ExperimentNames'];
export type Group = Schemas['ExperimentGroup'];
export type Groups = Schemas['ExperimentGroups'];
export type View = Schemas['ExperimentView'];

/** An experiment, and what columns may show of it; the master sends all of it. */
export interface Row {
  readonly experiment: Experiment;
  readonly owner: string;
  /** First line of the notes. */
  readonly notes: string;
  /** Bytes of the checkpoints; null where that is not known. */
  readonly size: number | null;
  readonly hparams: Readonly<Record<string, unknown>>;
  readonly metrics: readonly MetricSummary[];
}

/** Answer of `experiment-list`. */
export interface List {
  readonly ids: readonly ExperimentId[];
  readonly total: number;
  readonly notice: string;
  readonly rows: readonly Row[];
}

/** Which value of a metric a column shows; `metric` is the best one. */
export type Which = 'metric' | 'last' | 'min' | 'max';

const PREFIXES = ['val_', 'validation_'];
// As det_native/schema/metric_names.py has them.
const GREATER = new Set(
  'acc accuracy auc auroc f1 precision recall iou dice r2 bleu'.split(' ')
);

/** Where a metric may be, best place first: a validation may have it without `val_`. */
export function metricCandidates(
  name: string
): ReadonlyArray<readonly [kind: string, name: string]> {
  const bare = PREFIXES.filter(prefix => name.startsWith(prefix)).map(
    prefix => ['validation', name.slice(prefix.length)] as const
  );
  return [['validation', name], ...bare, ['logged', name], ['training', name]];
}

/** Names under which the master may have a metric. */
export function metricNames(name: string): string[] {
  return [...new Set(metricCandidates(name).map(([, each]) => each))];
}

/** Whether the words of a metric's name say that greater values are better. */
export function greaterIsBetter(name: string): boolean {
  let bare = name.toLowerCase();
  PREFIXES.forEach(prefix => {
    bare = bare.startsWith(prefix) ? bare.slice(prefix.length) : bare;
  });
  return bare.split('_').some(word => GREATER.has(word));
}

/** A value of a metric of the best trial; null if there is none. */
export function metricValue(
  row: Row,
  name: string,
  which: Which
): number | null {
  const { experiment } = row;
  const own = metricNames(name).includes(experiment.metric);
  const smaller = own ? experiment.smaller_is_better : !greaterIsBetter(name);
  const column =
    which === 'last'
      ? 'last'
      : which === 'min' || (which === 'metric' && smaller)
        ? 'minimum'
        : 'maximum';
  for (const [kind, candidate] of metricCandidates(name)) {
    const summary = row.metrics.find(
      each => each.kind === kind && each.name === candidate
    );
    const value = summary?.[column];
    if (value !== null && value !== undefined) {
      return Number(value); // infinite ones come as text
    }
  }
  return null;
}

/** A hyperparameter of the best trial, nested ones by dots; undefined if it has none of this name. */
export function hyperparameter(row: Row, name: string): unknown {
  if (name in row.hparams) {
    return row.hparams[name];
  }
  return name
    .split('.')
    .reduce<unknown>(
      (found, part) =>
        typeof found === 'object' && found !== null
          ? (found as Record<string, unknown>)[part]
          : undefined,
      row.hparams
    );
}

/** Seconds from the start to the end, or until now; null before the start. */
export function durationOf(
  { started, ended }: Experiment,
  now: number = Date.now()
): number | null {
  if (!started) {
    return null;
  }
  const end = ended ? Date.parse(ended) : now;
  return Math.max((end - Date.parse(started)) / 1000, 0);
}

/** How an experiment is called in a list. */
export function nameOf({ name, id }: Experiment): string {
  return name === '' ? `Experiment ${id}` : name;
}

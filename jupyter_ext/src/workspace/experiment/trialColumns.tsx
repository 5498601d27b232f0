/** The columns of the table of trials. */

import type { components } from '../../generated/rest';
import { slotsText } from '../../shared/facts';
import { formatDuration, formatValue } from '../../shared/format';
import { flatHparams } from '../../shared/hparams';
import type { ExperimentView, Trial } from '../../shared/model';
import { trialStateText } from '../../shared/texts';
import { trialNumber } from '../../shared/trialNumbers';
import { StateBadge } from '../parts/state';
import { secondsOf } from './overview';
import type { TableColumn } from './virtualTable';

export type TrialSummary = components['schemas']['TrialSummary'];

/** Hyperparameters by name: those that tell trials apart, and those that are the same in all. */
export function hparamNames(trials: readonly Trial[]): {
  differing: string[];
  common: string[];
} {
  const texts = new Map<string, Set<string>>();
  const counts = new Map<string, number>();
  for (const { hparams } of trials) {
    for (const [name, value] of flatHparams(hparams)) {
      texts.set(
        name,
        (texts.get(name) ?? new Set()).add(JSON.stringify(value))
      );
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const names = [...texts.keys()];
  const differs = (name: string) =>
    texts.get(name)!.size > 1 || counts.get(name) !== trials.length;
  return {
    differing: names.filter(differs),
    common: names.filter(name => !differs(name))
  };
}

/** All columns that can be chosen; those of metrics have their last values. */
export function trialColumns(
  view: ExperimentView,
  summaries: readonly TrialSummary[],
  onOpen: (trial: Trial) => void
): Array<TableColumn<Trial>> {
  const { experiment, trials } = view;
  const metric = experiment?.metric || 'metric';
  const hparams = new Map(
    trials.map(trial => [trial.id, new Map(flatHparams(trial.hparams))])
  );
  const { differing, common } = hparamNames(trials);
  const metrics = metricNames(summaries);
  const lasts = new Map(
    summaries.map(({ trial_id, metrics: found }) => [
      trial_id,
      new Map((found ?? []).map(each => [metricKey(each), each.last]))
    ])
  );
  return [
    {
      name: 'number',
      title: 'Trial',
      numeric: true,
      value: trialNumber,
      cell: trial => (
        <button
          type="button"
          class="det-exp-open"
          aria-label={`Trial ${trialNumber(trial)}`}
          onClick={() => onOpen(trial)}
        >
          {trialNumber(trial)}
        </button>
      )
    },
    {
      name: 'state',
      title: 'State',
      value: trial => trialStateText(trial, experiment).word,
      cell: trial => <StateBadge state={trialStateText(trial, experiment)} />
    },
    ...[...differing, ...common].map((name): TableColumn<Trial> => ({
      name: `hp.${name}`,
      title: name,
      numeric: trials.every(
        ({ id }) => typeof hparams.get(id)?.get(name) !== 'string'
      ),
      value: ({ id }) => sortable(hparams.get(id)?.get(name)),
      cell: ({ id }) => formatValue(hparams.get(id)?.get(name))
    })),
    {
      name: 'best',
      title: `Best ${metric}`,
      numeric: true,
      value: trial => trial.best_validation,
      cell: trial => formatValue(trial.best_validation)
    },
    ...metrics.map((key): TableColumn<Trial> => ({
      name: `metric.${key}`,
      title: key,
      numeric: true,
      value: ({ id }) => lasts.get(id)?.get(key),
      cell: ({ id }) => formatValue(lasts.get(id)?.get(key))
    })),
    {
      name: 'batches',
      title: 'Batches',
      numeric: true,
      value: trial => trial.batches,
      cell: trial =>
        `${trial.batches.toLocaleString('en')} / ${trial.target_batches.toLocaleString('en')}`
    },
    {
      name: 'duration',
      title: 'Duration',
      numeric: true,
      value: trial => secondsOf(trial),
      cell: trial => formatDuration(secondsOf(trial))
    },
    {
      name: 'restarts',
      title: 'Restarts',
      numeric: true,
      value: trial => trial.restarts,
      cell: trial => trial.restarts
    },
    {
      name: 'slots',
      title: 'Slots',
      cell: trial => slotsText(trial, experiment)
    },
    {
      name: 'seed',
      title: 'Seed',
      numeric: true,
      value: trial => trial.seed,
      cell: trial => trial.seed
    }
  ];
}

/** `training loss`: the same name may be measured twice. */
function metricKey({
  kind,
  name
}: components['schemas']['MetricSummary']): string {
  return `${kind} ${name}`;
}

function metricNames(summaries: readonly TrialSummary[]): string[] {
  const names = new Set(
    summaries.flatMap(({ metrics }) => (metrics ?? []).map(metricKey))
  );
  return [...names].sort().reverse();
}

function sortable(value: unknown): number | string | null {
  if (typeof value === 'number' || typeof value === 'string') {
    return value;
  }
  return value === undefined || value === null ? null : JSON.stringify(value);
}

/** What is shown as long as nobody chooses. */
export function standardColumns(
  columns: ReadonlyArray<TableColumn<Trial>>,
  trials: readonly Trial[]
): string[] {
  const { differing } = hparamNames(trials);
  const shown = new Set([
    ...['number', 'state', 'best', 'batches', 'duration', 'restarts'],
    ...(trials.length > 1 ? differing : [])
      .slice(0, 8)
      .map(name => `hp.${name}`)
  ]);
  return columns.map(({ name }) => name).filter(name => shown.has(name));
}

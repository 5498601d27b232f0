/** What a search has come to: best value over time, rungs, and values of hyperparameters beside the metric. Pure. */

import { bestFirst } from './facts';
import { formatValue } from './format';
import { flatHparams } from './hparams';
import type { ExperimentDetail, ExperimentView, Trial } from './model';
import { isTerminal } from './model';
import { trialNumber } from './trialNumbers';

/** Of more hyperparameters than these, the others are only named. */
export const MOST_AXES = 12;

/** A trial that has a value of the searcher's metric. */
export interface SearchPoint {
  readonly trial: Trial;
  readonly value: number;
  readonly hparams: ReadonlyMap<string, unknown>;
}

/** Places of values on an axis, from 0 to 1; of what are no numbers, one place for each. */
export interface SearchAxis {
  readonly name: string;
  /** Texts at the two ends, or one for each value that is no number. */
  readonly labels: ReadonlyArray<{ readonly place: number; text: string }>;
  place(value: unknown): number | null;
}

/** A trial that has a value, and the best value of all that had theirs by then. */
export interface BestStep {
  readonly trialId: number;
  readonly seconds: number;
  readonly value: number;
  readonly best: number;
}

/** What became of the trials of one length. */
export interface Rung {
  readonly length: number;
  readonly promoted: readonly number[];
  /** Trained as long as any trial of the search may be. */
  readonly finished: readonly number[];
  readonly stopped: readonly number[];
  readonly training: readonly number[];
}

/** Whether there is a search to be seen: several trials, of which not each is an experiment for itself. */
export function isSearch({ experiment, trials, trialId }: ExperimentView) {
  return trialId === 0 && experiment !== null && trials.length > 1;
}

/** The trials that have a number as their best value, the best last: what is drawn last lies above. */
export function pointsOf(view: ExperimentView): SearchPoint[] {
  return bestFirst(view)
    .filter(
      ({ best_validation: value }) => value !== null && Number.isFinite(+value)
    )
    .map(trial => ({
      trial,
      value: Number(trial.best_validation),
      hparams: new Map(flatHparams(trial.hparams))
    }))
    .reverse();
}

/** Names of the hyperparameters that have more than one value. */
export function differingNames(trials: readonly Trial[]): string[] {
  const found = new Map<string, Set<string>>();
  for (const { hparams } of trials) {
    for (const [name, value] of flatHparams(hparams)) {
      const values = found.get(name) ?? new Set();
      found.set(name, values.add(JSON.stringify(value)));
    }
  }
  return [...found].filter(([, { size }]) => size > 1).map(([name]) => name);
}

/** Whether a hyperparameter is searched over powers. */
export function isLogarithmic(
  experiment: ExperimentDetail | null,
  name: string
): boolean {
  let space: unknown = experiment?.config.hyperparameters;
  for (const part of name.split('.')) {
    space = (space as Record<string, unknown> | undefined)?.[part];
  }
  return (space as { type?: unknown } | undefined)?.type === 'log';
}

export function axisOf(
  name: string,
  values: readonly unknown[],
  logarithmic = false
): SearchAxis {
  if (values.every(value => typeof value === 'number')) {
    return numericAxis(name, values, logarithmic);
  }
  const texts = [...new Set(values.map(formatValue))].sort();
  const at = (index: number) =>
    texts.length > 1 ? index / (texts.length - 1) : 0.5;
  return {
    name,
    labels: texts.map((text, index) => ({ place: at(index), text })),
    place: value => {
      const index = texts.indexOf(formatValue(value));
      return index < 0 ? null : at(index);
    }
  };
}

function numericAxis(
  name: string,
  values: readonly number[],
  logarithmic: boolean
): SearchAxis {
  const low = values.reduce((one, other) => Math.min(one, other), Infinity);
  const high = values.reduce((one, other) => Math.max(one, other), -Infinity);
  const scale = logarithmic && low > 0 ? Math.log : (value: number) => value;
  const span = scale(high) - scale(low);
  const ends =
    low === high
      ? [[0.5, low]]
      : [
          [0, low],
          [1, high]
        ];
  return {
    name,
    labels: (values.length > 0 ? ends : []).map(([place = 0, value]) => ({
      place,
      text: formatValue(value)
    })),
    place: value =>
      typeof value !== 'number'
        ? null
        : span > 0
          ? (scale(value) - scale(low)) / span
          : 0.5
  };
}

/** Each trial with a value, in order of the time since the first one was made at which it had it, or had ended. */
export function bestSoFar(view: ExperimentView): BestStep[] {
  const begun = Math.min(
    ...view.trials.map(({ created }) => Date.parse(created))
  );
  const smaller = view.experiment?.smaller_is_better !== false;
  let best = smaller ? Infinity : -Infinity;
  return pointsOf(view)
    .map(({ trial, value }) => ({
      trialId: trial.id,
      seconds: (Date.parse(trial.best_at ?? trial.ended ?? '') - begun) / 1000,
      value
    }))
    .filter(({ seconds }) => Number.isFinite(seconds))
    .sort((one, other) => one.seconds - other.seconds)
    .map(step => {
      best = smaller ? Math.min(best, step.value) : Math.max(best, step.value);
      return { ...step, best };
    });
}

/** The lengths at which a search in stages decides, longest first; none where all trials have one length. */
export function rungsOf({ experiment, trials }: ExperimentView): Rung[] {
  const whole = wholeLength(experiment);
  const lengths = [...new Set(trials.flatMap(({ stages = [] }) => stages))];
  if (lengths.length < 2) {
    return [];
  }
  const numbers = (found: readonly Trial[]) => found.map(trialNumber);
  return lengths
    .sort((one, other) => other - one)
    .map(length => {
      const last = trials.filter(({ stages }) => stages?.at(-1) === length);
      return {
        length,
        promoted: numbers(
          trials.filter(
            ({ stages }) => stages?.includes(length) && stages.at(-1) !== length
          )
        ),
        finished: numbers(last.filter(has => isFinished(has, whole))),
        stopped: numbers(
          last.filter(has => isTerminal(has.state) && !isFinished(has, whole))
        ),
        training: numbers(last.filter(({ state }) => !isTerminal(state)))
      };
    });
}

const MOST_NAMED = 8;

/** `promoted: trials 3, 5 and 2 others`; empty where there are none. */
export function namedTrials(word: string, numbers: readonly number[]): string {
  if (numbers.length === 0) {
    return '';
  }
  const named = numbers.slice(
    0,
    numbers.length > MOST_NAMED ? MOST_NAMED - 1 : MOST_NAMED
  );
  const others = numbers.length - named.length;
  const more = others > 0 ? ` and ${others} others` : '';
  return `${word}: trial${numbers.length > 1 ? 's' : ''} ${named.join(', ')}${more}`;
}

/** A length of the search in words: `1 epoch`. */
export function lengthText(
  experiment: ExperimentDetail | null,
  length: number
): string {
  const [unit] = maxLength(experiment);
  const one: Record<string, string> = {
    batches: 'batch',
    epochs: 'epoch',
    records: 'record'
  };
  return `${length} ${length === 1 ? (one[unit] ?? unit) : unit}`;
}

/** How long a trial of the search is trained at most, in its unit; null where that is not known. */
function wholeLength(experiment: ExperimentDetail | null): number | null {
  const [, length] = maxLength(experiment);
  return typeof length === 'number' ? length : null;
}

function isFinished({ state, stages }: Trial, whole: number | null): boolean {
  return state === 'COMPLETED' && stages?.at(-1) === whole;
}

function maxLength(experiment: ExperimentDetail | null): [string, unknown] {
  const { searcher } = (experiment?.config ?? {}) as {
    searcher?: { max_length?: unknown };
  };
  const length = searcher?.max_length;
  const [written] =
    length !== null && typeof length === 'object' ? Object.entries(length) : [];
  return written ?? ['batches', length];
}

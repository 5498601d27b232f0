/** Curves in the shape in which they are drawn: grouped by metric, with one common x. Pure. */

import type { MetricCurve } from './model';

export type Values = Array<number | null | undefined>;

/** A curve with numbers only: what is no number is a gap. */
export interface Line {
  readonly key: string;
  readonly trialId: number;
  readonly validation: boolean;
  /** Logged by the user's own code: neither of the training nor of a validation. */
  readonly logged: boolean;
  readonly batch: readonly number[];
  readonly mean: Values;
  /** The newest value as it was reported, which what is drawn may be the mean of. */
  readonly last: number | null;
  /** Null where minimum and maximum say no more than the mean. */
  readonly band: { readonly minimum: Values; readonly maximum: Values } | null;
}

/** The panel that a metric belongs to: its name without what marks it as a validation metric. */
export function panelOf(name: string): string {
  for (const prefix of ['val_', 'validation_']) {
    if (name.startsWith(prefix) && name !== prefix) {
      return name.slice(prefix.length);
    }
  }
  return name;
}

/** Whether it measures a validation, by its kind or, where the user's own loop has reported it, by its name. */
export function isValidation(curve: {
  readonly kind: string;
  readonly name: string;
}): boolean {
  return curve.kind === 'validation' || panelOf(curve.name) !== curve.name;
}

/**
 * Group curves by panel, the panel of `first` (the searcher's metric) before the others.
 *
 * Validation that only repeats training is left out: a run without validation data is "validated" by its training
 * metrics.
 */
export function groupCurves(
  curves: readonly MetricCurve[],
  first = ''
): ReadonlyMap<string, readonly MetricCurve[]> {
  const training = new Map<string, MetricCurve>();
  for (const curve of curves) {
    if (curve.kind === 'training') {
      training.set(`${curve.trial_id} ${curve.name}`, curve);
    }
  }
  const shown = curves.filter(curve => {
    const twin = training.get(`${curve.trial_id} ${curve.name}`);
    const repeated =
      curve.kind === 'validation' && twin && repeats(curve, twin);
    return curve.batch.length > 0 && !repeated;
  });
  const reported = shown.filter(({ kind }) => kind !== 'logged');
  const panel = panelsOf(reported);
  const taken = new Set(reported.map(({ name }) => panelOf(name)));
  const logged = panelsOf(shown.filter(({ kind }) => kind === 'logged'));
  // What the user's code logs has charts of its own.
  const own = (name: string) =>
    taken.has(panelOf(name)) ? `${name} (logged)` : logged(name);
  const groups = new Map<string, MetricCurve[]>([[panel(first), []]]);
  for (const curve of shown) {
    const name = curve.kind === 'logged' ? own(curve.name) : panel(curve.name);
    groups.set(name, [...(groups.get(name) ?? []), curve]);
  }
  return new Map([...groups].filter(([, found]) => found.length > 0));
}

/**
 * The panel of each metric. Where two would meet that are both of validations, such as `val_x` and `validation_x`, each
 * has its own; so has a metric that is alone in its panel.
 */
function panelsOf(curves: readonly MetricCurve[]): (name: string) => string {
  const panels = new Map<string, Set<string>>();
  const names = new Map<string, string>();
  const crowded = new Set<string>();
  for (const curve of curves) {
    const panel = panelOf(curve.name);
    const place = `${isValidation(curve)} ${panel}`;
    if ((names.get(place) ?? curve.name) !== curve.name) {
      crowded.add(panel);
    }
    names.set(place, curve.name);
    panels.set(panel, (panels.get(panel) ?? new Set()).add(curve.name));
  }
  return name => {
    const panel = panelOf(name);
    const [only = panel, other] = panels.get(panel) ?? [];
    return crowded.has(panel) ? name : other === undefined ? only : panel;
  };
}

function repeats(curve: MetricCurve, training: MetricCurve): boolean {
  const known = new Map(
    training.batch.map((batch, index) => [batch, training.mean[index]])
  );
  return curve.batch.every(
    (batch, index) => known.get(batch) === curve.mean[index]
  );
}

/** Turn a curve into a line; in a logarithmic chart there is nothing at or below zero. */
export function asLine(curve: MetricCurve, logarithmic = false): Line {
  const clean = (values: readonly unknown[]): Values =>
    values.map(value =>
      typeof value === 'number' &&
      Number.isFinite(value) &&
      (!logarithmic || value > 0)
        ? value
        : null
    );
  const mean = clean(curve.mean);
  const [minimum, maximum] = [clean(curve.minimum), clean(curve.maximum)];
  const flat = mean.every(
    (value, index) => minimum[index] === value && maximum[index] === value
  );
  return {
    key: `${curve.trial_id} ${curve.kind} ${curve.name}`,
    trialId: curve.trial_id,
    validation: isValidation(curve),
    logged: curve.kind === 'logged',
    batch: curve.batch,
    mean,
    last: clean([curve.last])[0] ?? null,
    band: flat ? null : { minimum, maximum }
  };
}

/** Lines with those of these trials behind all others: the last one's lie on top when they are drawn. */
export function putLast(
  lines: readonly Line[],
  ...trials: ReadonlyArray<number | null>
): Line[] {
  const place = (line: Line) => trials.lastIndexOf(line.trialId);
  return lines.toSorted((one, other) => place(one) - place(other));
}

/** Lines in the order in which they are told: those that lie on top first, each trial's in the order they have. */
export function putFirst(
  lines: readonly Line[],
  ...trials: ReadonlyArray<number | null>
): Line[] {
  return putLast([...lines].reverse(), ...trials).reverse();
}

/** Indices of values with a gap, or nothing at all, on both sides: no line goes through them. */
export function isolated(values: ArrayLike<Values[number]>): number[] {
  const found: number[] = [];
  let last = -1;
  let alone = true;
  Array.from(values).forEach((value, index) => {
    if (value === undefined) {
      return; // of another line
    }
    if (value === null) {
      alone = true;
      return;
    }
    if (alone) {
      found.push(index);
    } else if (found.at(-1) === last) {
      found.pop();
    }
    last = index;
    alone = false;
  });
  return found;
}

/** Whether there is anything to draw: one infinity makes a mean infinite, but maybe not what it is the mean of. */
export function hasNumbers(curves: readonly MetricCurve[]): boolean {
  return curves.some(curve =>
    [curve.mean, curve.minimum, curve.maximum].some(values =>
      values.some(Number.isFinite)
    )
  );
}

/** Whether a chart of these curves can be logarithmic at all. */
export function hasPositive(curves: readonly MetricCurve[]): boolean {
  return curves.some(curve =>
    curve.mean.some(
      value => typeof value === 'number' && value > 0 && Number.isFinite(value)
    )
  );
}

/** All x of all lines, ascending, each once. */
export function commonBatches(lines: readonly Line[]): number[] {
  let common: readonly number[] = [];
  for (const { batch } of lines) {
    common = sameNumbers(common, batch)
      ? common
      : mergeAscending(common, batch);
  }
  return [...common];
}

/** Put values at their places on the common x; `undefined` where a line has nothing to say, which is no gap. */
export function align(
  common: readonly number[],
  batch: readonly number[],
  values: Values
): Values {
  if (common.length === batch.length) {
    return values;
  }
  const aligned: Values = new Array<number | null | undefined>(
    common.length
  ).fill(undefined);
  let at = 0;
  for (let index = 0; index < batch.length; index++) {
    while (at < common.length && common[at] !== batch[index]) {
      at += 1;
    }
    if (at < common.length) {
      aligned[at] = values[index];
    }
  }
  return aligned;
}

/** The newest value at or before an index; null if there is none. */
export function valueAt(values: Values, index: number): number | null {
  for (let at = Math.min(index, values.length - 1); at >= 0; at--) {
    const value = values[at];
    if (value !== null && value !== undefined) {
      return value;
    }
  }
  return null;
}

export function sameNumbers(
  one: readonly number[],
  other: readonly number[]
): boolean {
  return (
    one === other ||
    (one.length === other.length && one.every((x, at) => x === other[at]))
  );
}

function mergeAscending(
  one: readonly number[],
  other: readonly number[]
): number[] {
  const merged: number[] = [];
  let [left, right] = [0, 0];
  while (left < one.length || right < other.length) {
    const [a, b] = [one[left] ?? Infinity, other[right] ?? Infinity];
    merged.push(Math.min(a, b));
    left += a <= b ? 1 : 0;
    right += b <= a ? 1 : 0;
  }
  return merged;
}

/** Curves of an experiment as charts: a metric each, validation in front of training. Pure. */

import type { MetricCurve, Trial } from '../../shared/model';
import { hparamTexts } from '../../shared/hparams';
import { groupCurves, isValidation } from '../../shared/plotData';
import { trialNumber } from '../../shared/trialNumbers';
import { chartKey } from './boardState';
import {
  axesOfTrial,
  type Lengths,
  placesOf,
  type TrialAxes,
  type TrialClock
} from './clock';
import type { ChartData, Look, Series, Value } from './series';

export interface CurveFacts {
  /** All trials of the experiment. */
  readonly trials: readonly Trial[];
  readonly bestId: number | null;
  /** The metric that trials are compared by: its chart comes first. */
  readonly metric: string;
  readonly clocks: readonly TrialClock[];
  /** Of the experiment's configuration. */
  readonly lengths: Lengths;
}

const COLOURS = 8;

/** A chart for each metric. */
export function chartsOf(
  curves: readonly MetricCurve[],
  facts: CurveFacts
): ChartData[] {
  const ids = [...new Set(curves.map(curve => curve.trial_id))].sort(
    (one, other) => one - other
  );
  const byId = new Map(facts.trials.map(trial => [trial.id, trial]));
  const shown = ids.flatMap(id => byId.get(id) ?? []);
  const texts = hparamTexts(shown).own;
  const axes = axesOfTrials(facts, ids);
  const places = new WeakMap<readonly number[], Series['x']>();
  const colours = new Map(ids.map((id, at) => [id, at]));
  return [...groupCurves(curves, facts.metric)].map(([title, group]) => ({
    key: chartKey(title),
    title,
    series: group.map(curve => {
      const trial = byId.get(curve.trial_id);
      const both = new Set(group.map(isValidation)).size === 2;
      return seriesOf(curve, {
        alone: ids.length === 1,
        both,
        best: curve.trial_id === facts.bestId,
        number: trial ? trialNumber(trial) : curve.trial_id,
        detail: texts.get(curve.trial_id) ?? '',
        colour: colours.get(curve.trial_id) ?? 0,
        x: placesIn(places, axes.get(curve.trial_id), curve)
      });
    })
  }));
}

/** The axes of trials by their ids. */
export function axesOfTrials(
  { trials, clocks, lengths }: CurveFacts,
  ids: readonly number[]
): Map<number, TrialAxes> {
  const byId = new Map(trials.map(trial => [trial.id, trial]));
  const clockOf = new Map(clocks.map(clock => [clock.trial_id, clock]));
  return new Map(
    ids.map(id => {
      const { hparams = {}, batches, ended } = byId.get(id) ?? {};
      const trial = { ...lengths, hparams, batches, ended };
      return [id, axesOfTrial(clockOf.get(id), trial)];
    })
  );
}

interface Place {
  readonly alone: boolean;
  readonly both: boolean;
  readonly best: boolean;
  readonly number: number;
  readonly detail: string;
  readonly colour: number;
  readonly x: Series['x'];
}

function seriesOf(curve: MetricCurve, place: Place): Series {
  const { alone, both, best, number } = place;
  const validation = isValidation(curve);
  const [minimum, maximum, mean] = [
    curve.minimum.map(asValue),
    curve.maximum.map(asValue),
    curve.mean.map(asValue)
  ];
  const banded = mean.some(
    (value, at) => minimum[at] !== value || maximum[at] !== value
  );
  const trial = `trial ${number}${best ? ' (best)' : ''}`;
  const kind = validation ? 'validation' : 'training';
  const look: Look = both
    ? validation
      ? 'bold'
      : 'faint'
    : alone || best
      ? 'bold'
      : 'plain';
  return {
    key: `${curve.trial_id} ${curve.kind} ${curve.name}`,
    source: {
      trialId: curve.trial_id,
      kind: curve.kind,
      name: curve.name
    },
    label: alone ? curve.name : both ? `${trial}, ${kind}` : trial,
    ...(alone || place.detail === '' ? {} : { detail: place.detail }),
    group: `trial ${curve.trial_id}`,
    colour: place.colour,
    look,
    dashed: both && !validation && place.colour < COLOURS,
    x: place.x,
    values: mean,
    last: asValue(curve.last),
    band: banded ? { minimum, maximum } : null,
    reduced: banded
  };
}

/** A number as it travels: infinities are words, and so is what is no number. */
export function asValue(value: unknown): Value {
  if (typeof value === 'number') {
    return Number.isNaN(value) ? null : value;
  }
  switch (value) {
    case 'Infinity':
      return Infinity;
    case '-Infinity':
      return -Infinity;
    default:
      return null;
  }
}

/** Metrics of a trial share their batches: their places are worked out once. */
function placesIn(
  known: WeakMap<readonly number[], Series['x']>,
  axes: TrialAxes | undefined,
  { batch }: MetricCurve
): Series['x'] {
  const found = known.get(batch);
  if (found) {
    return found;
  }
  const made = axes ? placesOf(axes, batch) : { batch };
  known.set(batch, made);
  return made;
}

/** By what an experiment differs from the one before it: what tells rows of the same name apart. Pure. */
import { formatValue } from '../../shared/format';
import { flatHparams } from '../../shared/hparams';
import type { Experiment, ExperimentId } from '../../shared/model';

/** Sections of a configuration that do not say how it trains. */
const NOT_TRAINING = new Set([
  'name',
  'description',
  'labels',
  'project',
  'workspace',
  'notify',
  'after',
  'reproducibility',
  'hyperparameters'
]);

/** The changes of each experiment that has any, by its id; `experiments` are the newest first. */
export function changesOf(
  experiments: readonly Experiment[]
): ReadonlyMap<ExperimentId, string> {
  const found = new Map<ExperimentId, string>();
  const byId = new Map(experiments.map(each => [each.id, each]));
  const older = new Map<string, Experiment>();
  for (const experiment of experiments.toReversed()) {
    const before =
      byId.get(experiment.forked_from ?? -1) ?? older.get(experiment.name);
    older.set(experiment.name, experiment);
    const text = before === undefined ? '' : changesText(experiment, before);
    if (text !== '') {
      found.set(experiment.id, text);
    }
  }
  return found;
}

/** `rate=0.01, units=64`: what is other than in `before`, hyperparameters first. */
export function changesText(
  experiment: Experiment,
  before: Experiment
): string {
  const [now, then] = [hparamsOf(experiment), hparamsOf(before)];
  const [rest, restThen] = [restOf(experiment), restOf(before)];
  return [...differing(now, then), ...differing(rest, restThen)].join(', ');
}

function differing(
  now: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string>
): string[] {
  const changed = [...now].filter(
    ([name, value]) => before.get(name) !== value
  );
  const gone = [...before.keys()].filter(name => !now.has(name));
  return [
    ...changed.map(([name, value]) => `${name}=${value}`),
    ...gone.map(name => `no ${name}`)
  ];
}

function hparamsOf({ config }: Experiment): Map<string, string> {
  const given = (config as { hyperparameters?: unknown }).hyperparameters;
  return new Map(isGroup(given) ? hparamTexts(given) : []);
}

function hparamTexts(
  group: Readonly<Record<string, unknown>>,
  prefix = ''
): Array<[string, string]> {
  return Object.entries(group).flatMap(
    ([name, value]): Array<[string, string]> =>
      isRange(value)
        ? constOrRange(value, prefix + name)
        : isGroup(value)
          ? hparamTexts(value, `${prefix}${name}.`)
          : [[prefix + name, formatValue(value)]]
  );
}

const RANGES = new Set<unknown>([
  'const',
  'categorical',
  'int',
  'double',
  'log'
]);

function isRange(value: unknown): value is Readonly<Record<string, unknown>> {
  return isGroup(value) && RANGES.has(value.type);
}

/** A group of values that is fixed as a whole has each of its values told, as one that is written out. */
function constOrRange(
  value: Readonly<Record<string, unknown>>,
  name: string
): Array<[string, string]> {
  const { type, val } = value;
  if (type !== 'const') {
    return [[name, rangeText(value)]];
  }
  return isGroup(val)
    ? flatHparams(val, `${name}.`).map(([each, found]) => [
        each,
        formatValue(found)
      ])
    : [[name, formatValue(val)]];
}

/** The range that a search draws from: `0.001 to 0.1`, `16 | 32`. */
function rangeText(value: Readonly<Record<string, unknown>>): string {
  const { type, vals, minval, maxval } = value;
  if (type === 'categorical' && Array.isArray(vals)) {
    return vals.map(formatValue).join(' | ');
  }
  const power = type === 'log' ? '10^' : '';
  return `${power}${formatValue(minval)} to ${power}${formatValue(maxval)}`;
}

function restOf({ config }: Experiment): Map<string, string> {
  const rest = Object.fromEntries(
    Object.entries(config).filter(([name]) => !NOT_TRAINING.has(name))
  );
  return new Map(
    flatHparams(rest).map(([name, value]) => [
      name.replace(/^(searcher|resources)\./, ''),
      formatValue(value)
    ])
  );
}

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

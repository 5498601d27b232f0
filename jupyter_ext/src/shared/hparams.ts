/** Hyperparameters in words, and which of them tell the trials of an experiment apart. Pure. */

import { formatValue } from './format';
import type { Trial } from './model';

type Hparams = Readonly<Record<string, unknown>>;

/** Those by which each trial, by its number, differs from others, and those that are the same in all. */
export interface HparamTexts {
  readonly own: ReadonlyMap<number, string>;
  readonly common: string;
}

interface Pair {
  /** Tells values apart whose texts are the same. */
  readonly key: string;
  readonly text: string;
}

/** `name=value` pairs in alphabetical order, `h2` before `h10`; those of a group by their whole names, such as `optimizer.rate`. */
export function formatHparams(hparams: Hparams): string {
  return joined(pairsOf(hparams));
}

/** Of a single trial, all are its own. */
export function hparamTexts(trials: readonly Trial[]): HparamTexts {
  const pairs = trials.map(({ hparams }) => pairsOf(hparams));
  const counts = new Map<string, number>();
  for (const { key } of pairs.flat()) {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const inAll = ({ key }: Pair) =>
    trials.length > 1 && counts.get(key) === trials.length;
  const own = (at: number) =>
    joined(pairs[at]?.filter(pair => !inAll(pair)) ?? []);
  return {
    own: new Map(trials.map(({ id }, at) => [id, own(at)])),
    common: joined(pairs[0]?.filter(inAll) ?? [])
  };
}

function joined(pairs: readonly Pair[]): string {
  return pairs.map(({ text }) => text).join(', ');
}

/** What sorts `h2` before `h10`, as `display/hparams.py` has it. */
function natural(name: string): string {
  return `${name.replace(/\d+/g, digits => digits.padStart(9, '0'))}\0${name}`;
}

function pairsOf(hparams: Hparams, prefix = ''): Pair[] {
  return Object.entries(hparams)
    .sort(([one], [other]) => (natural(one) < natural(other) ? -1 : 1))
    .flatMap(([last, value]) => {
      const name = prefix + last;
      return value && typeof value === 'object' && !Array.isArray(value)
        ? pairsOf(value as Hparams, `${name}.`)
        : {
            key: JSON.stringify([name, value]),
            text: `${name}=${formatValue(value)}`
          };
    });
}

/** All values by their whole names, in alphabetical order, `h2` before `h10`. */
export function flatHparams(
  hparams: Hparams,
  prefix = ''
): Array<[string, unknown]> {
  return Object.entries(hparams)
    .sort(([one], [other]) => (natural(one) < natural(other) ? -1 : 1))
    .flatMap(([last, value]): Array<[string, unknown]> =>
      isGroup(value)
        ? flatHparams(value, `${prefix}${last}.`)
        : [[prefix + last, value]]
    );
}

function isGroup(value: unknown): value is Hparams {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Of which trials the curves are shown, where there are more than fit. Pure. */

import type { Trial } from '../../shared/model';
import { trialsBestFirst } from '../../shared/ranking';
import { trialNumber } from '../../shared/trialNumbers';

/** `best:20`, `newest:20`, or numbers of trials: `3,7,12`. */
export type TrialChoice =
  | { readonly kind: 'best' | 'newest'; readonly count: number }
  | { readonly kind: 'chosen'; readonly numbers: readonly number[] };

export const MOST_TRIALS = 50;
export const DEFAULT_CHOICE: TrialChoice = { kind: 'best', count: 20 };

export function readChoice(text: string): TrialChoice | null {
  const [kind, amount = ''] = text.split(':');
  if ((kind === 'best' || kind === 'newest') && /^\d{1,3}$/.test(amount)) {
    const count = Math.min(Math.max(Number(amount), 1), MOST_TRIALS);
    return { kind, count };
  }
  const numbers = text
    .split(',')
    .map(Number)
    .filter(number => Number.isInteger(number) && number > 0);
  return numbers.length > 0
    ? { kind: 'chosen', numbers: [...new Set(numbers)].slice(0, MOST_TRIALS) }
    : null;
}

export function choiceText(choice: TrialChoice): string {
  return choice.kind === 'chosen'
    ? choice.numbers.join(',')
    : `${choice.kind}:${choice.count}`;
}

/** The trials of a choice, by their ids, oldest first. */
export function chosenTrials(
  trials: readonly Trial[],
  choice: TrialChoice,
  smallerIsBetter: boolean
): Trial[] {
  const found =
    choice.kind === 'chosen'
      ? trials.filter(trial => choice.numbers.includes(trialNumber(trial)))
      : choice.kind === 'best'
        ? trialsBestFirst(trials, smallerIsBetter).slice(0, choice.count)
        : trials.toReversed().slice(0, choice.count);
  return found.toSorted((one, other) => one.id - other.id);
}

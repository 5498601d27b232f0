/** What an experiment has to say that is no failure, each thing once. Pure. */

import type { ExperimentView, Trial } from '../../shared/model';
import { trialNumber } from '../../shared/trialNumbers';

const MOST_RANGES = 8;

/** Notices of the experiment, then those of its trials: `Trials 1 to 6: The loss became NaN.` */
export function noticesOf({ experiment, trials }: ExperimentView): string[] {
  const byText = new Map<string, number[]>();
  const said = new Set<string>();
  for (const trial of trials) {
    const text = warningOf(trial);
    if (text !== '') {
      byText.set(text, [...(byText.get(text) ?? []), trialNumber(trial)]);
    }
    if (trial.warning) {
      said.add(trial.warning);
    }
  }
  const own = [experiment?.notice, experiment?.warning].filter(
    (text): text is string => Boolean(text) && !said.has(text!)
  );
  return [
    ...new Set(own),
    ...[...byText].map(([text, numbers]) =>
      trials.length === 1 ? text : `${trialsText(numbers)}: ${text}`
    )
  ];
}

/** The warning of a trial; empty for none, and where the trial failed by the same. */
export function warningOf({ state, error, warning }: Trial): string {
  if (!warning || state !== 'ERROR' || !error) {
    return warning ?? '';
  }
  const event = beginning(warning).toLowerCase();
  return event !== '' && error.message.toLowerCase().includes(event)
    ? ''
    : warning.replace(/; the training goes on( \([^)]*\))?/, '');
}

/** `The loss became nan` of `The loss became nan at batch 3: the training goes on.` */
function beginning(text: string): string {
  return text.trim().split(/ at batch\b|[;:,.](?:\s|$)/)[0] ?? '';
}

/** `Trial 3`, `Trials 1 to 6, 9`. */
export function trialsText(numbers: readonly number[]): string {
  const ranges: Array<[first: number, last: number]> = [];
  for (const number of [...numbers].sort((one, two) => one - two)) {
    const current = ranges.at(-1);
    if (current && number <= current[1] + 1) {
      current[1] = number;
    } else {
      ranges.push([number, number]);
    }
  }
  const words = ranges
    .slice(0, MOST_RANGES)
    .map(([first, last]) =>
      first === last
        ? String(first)
        : last === first + 1
          ? `${first}, ${last}`
          : `${first} to ${last}`
    );
  const more = ranges.length > MOST_RANGES ? '…' : '';
  return `${numbers.length === 1 ? 'Trial' : 'Trials'} ${words.join(', ')}${more}`;
}

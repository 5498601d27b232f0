/** Chooses the trials whose curves are shown. */

import { useState } from 'preact/hooks';

import { formatValue } from '../../shared/format';
import type { Trial } from '../../shared/model';
import { trialNumber } from '../../shared/trialNumbers';
import { Checkbox, Select, TextField } from '../parts/field';
import { Popover } from '../parts/menu';
import {
  choiceText,
  MOST_TRIALS,
  readChoice,
  type TrialChoice
} from './trialChoice';

const COUNTS = [5, 10, 20, 50];
/** So many are listed; the others are found by their numbers or values. */
const LISTED = 200;

export interface TrialPickerProps {
  readonly trials: readonly Trial[];
  readonly shown: readonly Trial[];
  /** What tells a trial apart. */
  readonly details: ReadonlyMap<number, string>;
  readonly choice: TrialChoice | null;
  readonly onChange: (choice: TrialChoice | null) => void;
}

export function TrialPicker({
  trials,
  shown,
  details,
  choice,
  onChange
}: TrialPickerProps) {
  const [words, setWords] = useState('');
  const ids = new Set(shown.map(({ id }) => id));
  const wanted = words.trim().toLowerCase();
  const found = trials.filter(trial =>
    `trial ${trialNumber(trial)} ${details.get(trial.id) ?? ''}`
      .toLowerCase()
      .includes(wanted)
  );
  const value =
    choice === null
      ? ''
      : choice.kind === 'chosen'
        ? 'chosen'
        : choiceText(choice);
  const kinds = (['best', 'newest'] as const).flatMap(kind =>
    COUNTS.filter(count => count < trials.length).map(count => ({
      value: `${kind}:${count}`,
      label: `The ${count} ${kind}`
    }))
  );
  const toggle = (trial: Trial, checked: boolean) => {
    const numbers = shown.map(trialNumber);
    const number = trialNumber(trial);
    onChange({
      kind: 'chosen',
      numbers: checked
        ? [...numbers, number]
        : numbers.filter(each => each !== number)
    });
  };
  return (
    <Popover
      label={`Trials: ${shown.length.toLocaleString('en')} of ${trials.length.toLocaleString('en')}`}
    >
      {() => (
        <div class="det-board-chooser">
          <Select
            label="Show"
            value={value}
            choices={[
              ...(trials.length <= MOST_TRIALS
                ? [{ value: '', label: 'All' }]
                : []),
              ...kinds,
              ...(value === 'chosen'
                ? [{ value, label: 'Those chosen below' }]
                : []),
              ...(value === '' ||
              value === 'chosen' ||
              kinds.some(each => each.value === value)
                ? []
                : [{ value, label: `The ${value.replace(':', ' ')}` }])
            ]}
            onChange={text => onChange(readChoice(text))}
          />
          <TextField
            label="Search trials"
            type="search"
            value={words}
            placeholder="number or hyperparameter"
            onChange={setWords}
          />
          <div class="det-board-choices" role="group" aria-label="Trials">
            {found.slice(0, LISTED).map(trial => (
              <Checkbox
                key={trial.id}
                label={trialText(trial, details.get(trial.id))}
                checked={ids.has(trial.id)}
                onChange={checked => toggle(trial, checked)}
              />
            ))}
          </div>
          {found.length > LISTED && (
            <p class="det-curve-note">
              The first {LISTED} of {found.length.toLocaleString('en')}: search
              for the others.
            </p>
          )}
          {shown.length >= MOST_TRIALS && (
            <p class="det-curve-note">
              At most {MOST_TRIALS} trials are drawn at a time.
            </p>
          )}
        </div>
      )}
    </Popover>
  );
}

function trialText(trial: Trial, detail = ''): string {
  const value =
    trial.best_validation === null
      ? ''
      : `, best ${formatValue(trial.best_validation)}`;
  return `Trial ${trialNumber(trial)}${value}${detail && `: ${detail}`}`;
}

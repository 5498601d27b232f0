/** Chooses a trial; absent where there is one only. */

import type { ExperimentView } from '../../shared/model';
import { trialStateText } from '../../shared/texts';
import { trialNumber } from '../../shared/trialNumbers';
import { Select } from '../parts/field';

export function TrialSelect({
  view,
  label,
  value,
  automatic,
  onChange
}: {
  view: ExperimentView;
  label: string;
  /** The id of a trial; empty for the automatic choice. */
  value: string;
  /** Name of the automatic choice. */
  automatic: string;
  onChange: (value: string) => void;
}) {
  if (view.trials.length < 2) {
    return null;
  }
  return (
    <Select
      label={label}
      value={value}
      choices={[
        { value: '', label: automatic },
        ...view.trials.map(trial => ({
          value: String(trial.id),
          label: `Trial ${trialNumber(trial)}: ${trialStateText(trial, view.experiment).word}`
        }))
      ]}
      onChange={onChange}
    />
  );
}

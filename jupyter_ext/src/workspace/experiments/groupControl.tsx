/** By what experiments are grouped, and what the groups average. */

import { Select } from '../parts/field';
import type { ExperimentNames } from './rows';

const MOST = 200;

export interface GroupControlProps {
  group: string;
  measure: string;
  names: ExperimentNames | null;
  onChange: (change: { group: string; measure: string }) => void;
}

export function GroupControl({
  group,
  measure,
  names,
  onChange
}: GroupControlProps) {
  const hparams = names?.hyperparameters ?? [];
  const groups = [
    { value: '', label: 'None' },
    { value: 'name', label: 'Name' },
    { value: 'label', label: 'Label' },
    { value: 'project', label: 'Project' },
    { value: 'framework', label: 'Framework' },
    ...hparams.slice(0, MOST).map(({ name }) => ({
      value: `hp:${name}`,
      label: name.slice(0, 60)
    }))
  ];
  const measures = [
    ...(names?.metrics ?? []).slice(0, MOST).map(({ name }) => ({
      value: `metric:${name}`,
      label: `Best ${name.slice(0, 60)}`
    })),
    { value: 'duration', label: 'Duration' },
    { value: 'trials', label: 'Trials' },
    ...hparams.slice(0, MOST).map(({ name }) => ({
      value: `hp:${name}`,
      label: `Hyperparameter ${name.slice(0, 60)}`
    }))
  ];
  return (
    <>
      <Select
        label="Group by"
        value={group}
        choices={withValue(groups, group)}
        onChange={value => onChange({ group: value, measure })}
      />
      {group !== '' && (
        <Select
          label="Mean of"
          value={measure}
          choices={withValue(measures, measure)}
          onChange={value => onChange({ group, measure: value })}
        />
      )}
    </>
  );
}

/** An address may name what the list does not have. */
function withValue(
  choices: ReadonlyArray<{ value: string; label: string }>,
  value: string
): ReadonlyArray<{ value: string; label: string }> {
  return choices.some(choice => choice.value === value)
    ? choices
    : [...choices, { value, label: value.replace(/^\w+:/, '').slice(0, 60) }];
}

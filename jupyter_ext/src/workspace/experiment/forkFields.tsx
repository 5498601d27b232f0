/** Fields of the form of a fork: one for each hyperparameter, and one for each part of the configuration. */

import { Checkbox, Field, Select, TextField } from '../parts/field';
import type { ConfigField } from './configSchema';
import {
  DRAFT_KINDS,
  type DraftKind,
  fieldText,
  type HparamDraft
} from './forkForm';
import { isRange } from './forkSearch';

const KIND_LABELS: Readonly<Record<DraftKind, string>> = {
  const: 'constant',
  text: 'text',
  int: 'whole numbers',
  double: 'range',
  log: 'range, logarithmic',
  categorical: 'choices'
};

export function HparamInput({
  name,
  draft,
  single,
  problem,
  onChange
}: {
  name: string;
  draft: HparamDraft;
  /** There is one trial, whatever the range. */
  single: boolean;
  problem: string | undefined;
  onChange: (draft: HparamDraft) => void;
}) {
  const change = (part: Partial<HparamDraft>) =>
    onChange({ ...draft, ...part });
  const input = (label: string, part: keyof HparamDraft, hint?: string) => (
    <TextField
      label={label}
      value={draft[part]}
      {...(hint ? { hint } : {})}
      {...(problem ? { 'aria-invalid': true } : {})}
      onChange={text => change({ [part]: text })}
    />
  );
  const range = isRange(draft) && draft.kind !== 'categorical';
  return (
    <div class="det-exp-hparam" role="group" aria-label={name}>
      <span class="det-exp-hparam-name" title={name}>
        {name}
      </span>
      <Select
        label={`Kind of ${name}`}
        hideLabel
        value={draft.kind}
        choices={DRAFT_KINDS.map(value => ({
          value,
          label: KIND_LABELS[value]
        }))}
        onChange={kind => change({ kind: kind as DraftKind })}
      />
      <div class="det-exp-row">
        {(draft.kind === 'const' || draft.kind === 'text') &&
          input('Value', 'val')}
        {draft.kind === 'categorical' &&
          input('Values', 'vals', 'With commas between them.')}
        {range && input('From', 'minval')}
        {range && input('To', 'maxval')}
        {range && input('Points of a grid', 'count')}
        {draft.kind === 'log' && input('Base', 'base')}
      </div>
      {problem && (
        <p class="det-field-problem" role="alert">
          {problem}
        </p>
      )}
      {single && isRange(draft) && (
        <p class="det-exp-hparam-warning" role="status">
          One value will be drawn at random: the searcher is single and trains
          one trial. Choose another searcher below to try several values.
        </p>
      )}
    </div>
  );
}

export function ConfigInput({
  field,
  text,
  problem,
  onChange
}: {
  field: ConfigField;
  /** As it was changed; undefined while nobody has. */
  text: string | undefined;
  problem: string | undefined;
  onChange: (text: string) => void;
}) {
  const value = text ?? fieldText(field);
  const { kind, label } = field;
  const long = field.path.split('.').slice(1).join('.') || field.path;
  const name = kind === 'json' ? `${label} (JSON)` : label;
  if (kind === 'boolean' && !field.nullable) {
    return (
      <Checkbox
        label={name}
        checked={value === 'true'}
        onChange={checked => onChange(String(checked))}
      />
    );
  }
  if (kind === 'choice' || kind === 'boolean') {
    const choices = kind === 'boolean' ? ['true', 'false'] : field.choices;
    return (
      <Field label={name} {...(problem ? { problem } : {})}>
        {attributes => (
          <select
            {...attributes}
            class="det-input"
            value={value}
            onChange={event => onChange(event.currentTarget.value)}
          >
            {field.nullable && <option value="">not set</option>}
            {choices.map(each => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        )}
      </Field>
    );
  }
  if (kind === 'length') {
    const [units = '', unit = 'batches'] = value.split(' ');
    return (
      <Field label={name} {...(problem ? { problem } : {})}>
        {attributes => (
          <span class="det-exp-row">
            <input
              {...attributes}
              class="det-input"
              inputMode="numeric"
              value={units}
              onInput={event =>
                onChange(`${event.currentTarget.value} ${unit}`)
              }
            />
            <select
              class="det-input"
              aria-label={`Unit of ${long}`}
              value={unit}
              onChange={event =>
                onChange(`${units} ${event.currentTarget.value}`)
              }
            >
              {['batches', 'epochs', 'records'].map(each => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </span>
        )}
      </Field>
    );
  }
  return (
    <TextField
      label={name}
      value={value}
      {...(problem ? { problem } : {})}
      {...(field.nullable ? { placeholder: 'not set' } : {})}
      onChange={onChange}
    />
  );
}

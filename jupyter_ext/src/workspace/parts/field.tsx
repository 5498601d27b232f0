/** Fields of forms, each with its name, a hint and what is wrong. */

import type { ComponentChildren, JSX } from 'preact';
import { useId } from './useId';

export interface FieldProps {
  label: string;
  hint?: string;
  problem?: string;
  children: (attributes: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': boolean | undefined;
  }) => ComponentChildren;
}

/** A name above any control. */
export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId();
  const words = problem ?? hint;
  return (
    <div class="det-field">
      <label for={id}>{label}</label>
      {children({
        id,
        'aria-describedby': words ? `${id}-words` : undefined,
        'aria-invalid': problem ? true : undefined
      })}
      {words && (
        <p
          id={`${id}-words`}
          class={problem ? 'det-field-problem' : 'det-field-hint'}
        >
          {words}
        </p>
      )}
    </div>
  );
}

type InputAttributes = Omit<
  JSX.InputHTMLAttributes<HTMLInputElement>,
  'onChange' | 'onInput' | 'value' | 'label'
>;

export interface TextFieldProps extends InputAttributes {
  label: string;
  value: string;
  hint?: string;
  problem?: string;
  onChange: (value: string) => void;
  type?: 'text' | 'number' | 'search' | 'date' | 'datetime-local';
  /** Id of a datalist with suggestions. */
  list?: string;
  placeholder?: string;
}

export function TextField({
  label,
  value,
  hint,
  problem,
  onChange,
  ...rest
}: TextFieldProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {attributes => (
        <input
          type="text"
          {...rest}
          {...attributes}
          class="det-input"
          value={value}
          onInput={event => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export interface SelectProps {
  label: string;
  value: string;
  choices: readonly Choice[];
  onChange: (value: string) => void;
  /** Only for screen readers. */
  hideLabel?: boolean;
  disabled?: boolean;
}

/** One of several. */
export function Select({
  label,
  value,
  choices,
  onChange,
  hideLabel,
  disabled
}: SelectProps) {
  const id = useId();
  return (
    <span class="det-choice">
      <label for={id} class={hideLabel ? 'det-hidden' : undefined}>
        {label}
      </label>
      <select
        id={id}
        class="det-input"
        value={value}
        disabled={disabled}
        onChange={event => onChange(event.currentTarget.value)}
      >
        {choices.map(choice => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </span>
  );
}

export function Checkbox({
  label,
  checked,
  onChange
}: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label class="det-checkbox">
      <input
        type="checkbox"
        checked={checked}
        onChange={event => onChange(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

/** The labels of an experiment: each with what takes it off, and a field for one more. */

import { useRef, useState } from 'preact/hooks';

import { useWorkspace } from '../app/context';
import { Button, IconButton } from '../parts/button';
import { Icon } from '../parts/icon';
import type { ExperimentChange } from './useExperiment';

export function Labels({
  labels,
  onChange
}: {
  labels: readonly string[];
  /** Missing where they cannot be changed. */
  onChange?: (change: ExperimentChange) => Promise<void>;
}) {
  const { toasts } = useWorkspace();
  const [draft, setDraft] = useState<string | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const change = async (wanted: ExperimentChange) => {
    try {
      await onChange?.(wanted);
    } catch (error) {
      toasts.error(error);
    }
  };
  const add = async () => {
    const label = draft?.trim() ?? '';
    setDraft(null);
    if (label !== '' && !labels.includes(label)) {
      await change({ add_labels: [label] });
    }
  };
  if (onChange === undefined && labels.length === 0) {
    return null;
  }
  return (
    <div ref={root} class="det-exp-labels" role="group" aria-label="Labels">
      {labels.map(label => (
        <span key={label} class="det-exp-label">
          <span class="det-exp-label-text" title={label}>
            {label}
          </span>
          {onChange && (
            <IconButton
              icon="close"
              label={`Take off the label ${label}`}
              onClick={() => void change({ remove_labels: [label] })}
            />
          )}
        </span>
      ))}
      {onChange &&
        (draft === null ? (
          <Button look="quiet" onClick={() => setDraft('')}>
            <Icon name="tag" /> Add a label
          </Button>
        ) : (
          <input
            ref={element => element?.focus()}
            class="det-input"
            aria-label="New label"
            placeholder="Label, then Enter"
            maxLength={200}
            value={draft}
            onInput={event => setDraft(event.currentTarget.value)}
            onBlur={() => void add()}
            onKeyDown={event => {
              if (event.key === 'Enter') {
                void add();
              } else if (event.key === 'Escape') {
                event.stopPropagation();
                setDraft(null);
              }
            }}
          />
        ))}
    </div>
  );
}

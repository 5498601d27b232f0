/** A text that is edited in its place: a pencil, then a field; Enter saves, Escape leaves it as it was. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { asError } from '../data/useLoad';
import { Button, IconButton } from '../parts/button';

export function EditableText({
  label,
  value,
  longest,
  onSave,
  children
}: {
  /** What is edited: `Name`. */
  label: string;
  value: string;
  longest: number;
  /** Rejects with words for the user. */
  onSave?: (value: string) => Promise<void>;
  children: ComponentChildren;
}) {
  const [draft, setDraft] = useState<string | null>(null);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const root = useRef<HTMLSpanElement>(null);
  const editing = draft !== null;
  useEffect(() => {
    if (editing) {
      root.current?.querySelector('input')?.select();
    }
  }, [editing]);
  const close = () => {
    setDraft(null);
    setProblem('');
    // The pencil is there again with the next drawing.
    requestAnimationFrame(() => root.current?.querySelector('button')?.focus());
  };
  const save = async (text: string) => {
    if (text.trim() === value) {
      close();
      return;
    }
    setBusy(true);
    try {
      await onSave?.(text.trim());
      close();
    } catch (error) {
      const { message, remedy } = asError(error);
      setProblem(`${message} ${remedy}`.trim());
    } finally {
      setBusy(false);
    }
  };
  if (draft === null) {
    return (
      <span ref={root} class="det-exp-editable">
        {children}
        {onSave && (
          <IconButton
            icon="edit"
            label={`Edit the ${label.toLowerCase()}`}
            onClick={() => setDraft(value)}
          />
        )}
      </span>
    );
  }
  return (
    <span ref={root} class="det-exp-editable" data-editing>
      <input
        class="det-input"
        aria-label={label}
        aria-invalid={problem !== ''}
        value={draft}
        maxLength={longest}
        disabled={busy}
        onInput={event => setDraft(event.currentTarget.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            void save(event.currentTarget.value);
          } else if (event.key === 'Escape') {
            event.stopPropagation();
            close();
          }
        }}
      />
      <Button look="primary" disabled={busy} onClick={() => void save(draft)}>
        Save
      </Button>
      <Button onClick={close}>Cancel</Button>
      {problem && (
        <span class="det-field-problem" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}

/** Dialogs of the registry: a model is made or changed, a checkpoint becomes a version, a version is described. */

import { useState } from 'preact/hooks';

import { asError } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Field, TextField } from '../parts/field';
import { useId } from '../parts/useId';
import {
  metadataChange,
  metadataText,
  readLabels,
  readMetadata
} from './modelFacts';

/** What the form of a model or of a version has in it. */
export interface Described {
  readonly name: string;
  readonly description: string;
  readonly notes: string;
  readonly labels: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Of a version. */
  readonly stage?: string;
}

export const NOTHING: Described = {
  name: '',
  description: '',
  notes: '',
  labels: [],
  metadata: {}
};

/** What is sent of it: `metadata` of a new thing, what has changed of another one, `uuid` where that was asked for. */
export interface Sent {
  readonly name: string;
  readonly description: string;
  readonly notes: string;
  readonly labels: string[];
  readonly metadata?: Record<string, unknown>;
  readonly add_metadata?: Record<string, unknown>;
  readonly remove_metadata?: string[];
  readonly uuid?: string;
  readonly stage?: string;
}

export interface EditProps {
  title: string;
  action: string;
  before: Described;
  /** A new thing has all of its metadata sent. */
  isNew?: boolean;
  nameNeeded?: boolean;
  /** Asks for the id of a checkpoint, too. */
  uuidNeeded?: boolean;
  onSend: (body: Sent) => Promise<void>;
  onClose: () => void;
}

export function EditDialog({
  title,
  action,
  before,
  isNew,
  nameNeeded,
  uuidNeeded,
  onSend,
  onClose
}: EditProps) {
  const [form, setForm] = useState({
    uuid: '',
    name: before.name,
    description: before.description,
    notes: before.notes,
    labels: before.labels.join(', '),
    metadata: metadataText(before.metadata),
    stage: before.stage ?? ''
  });
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const metadata = readMetadata(form.metadata);
  const wrong =
    typeof metadata === 'string' ||
    (nameNeeded === true && form.name.trim() === '') ||
    (uuidNeeded === true && form.uuid.trim() === '');
  const field = (name: keyof typeof form) => ({
    value: form[name],
    onChange: (value: string) => setForm({ ...form, [name]: value })
  });

  async function send(): Promise<void> {
    if (wrong) {
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await onSend({
        name: form.name.trim(),
        description: form.description,
        notes: form.notes,
        labels: readLabels(form.labels),
        ...(isNew ? { metadata } : metadataChange(before.metadata, metadata)),
        ...(uuidNeeded ? { uuid: form.uuid.trim() } : {}),
        ...(before.stage === undefined ? {} : { stage: form.stage.trim() })
      });
      onClose();
    } catch (problem) {
      setError(asError(problem));
      setBusy(false);
    }
  }

  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={busy || wrong}
            onClick={() => void send()}
          >
            {action}
          </Button>
        </>
      }
    >
      {error !== null && <ErrorBox title="That did not work." error={error} />}
      {uuidNeeded && (
        <TextField
          label="Checkpoint"
          hint="Its id, as the Checkpoints tab of an experiment shows it."
          {...field('uuid')}
        />
      )}
      <TextField label="Name" {...field('name')} />
      <TextField label="Description" {...field('description')} />
      {before.stage !== undefined && (
        <TextField
          label="Stage"
          hint="Such as staging or production."
          {...field('stage')}
        />
      )}
      <TextField
        label="Labels"
        hint="Separated by commas."
        {...field('labels')}
      />
      <TextArea
        label="Metadata"
        hint="A line for each: name: value"
        problem={typeof metadata === 'string' ? metadata : undefined}
        {...field('metadata')}
      />
      <TextArea label="Notes" {...field('notes')} />
    </Dialog>
  );
}

function TextArea({
  label,
  hint,
  problem,
  value,
  onChange
}: {
  label: string;
  hint?: string;
  problem?: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {attributes => (
        <textarea
          {...attributes}
          class="det-input det-registry-area"
          rows={3}
          value={value}
          onInput={event => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Asks whether a model goes, and whether its versions may go with it. */
export function DeleteDialog({
  name,
  versions,
  onDelete,
  onClose
}: {
  name: string;
  versions: number;
  onDelete: () => Promise<void>;
  onClose: () => void;
}) {
  const id = useId();
  const [agreed, setAgreed] = useState(versions === 0);
  const [error, setError] = useState<unknown>(null);
  const remove = async () => {
    try {
      await onDelete();
    } catch (problem) {
      setError(asError(problem));
    }
  };
  return (
    <Dialog
      title={`Delete the model ${name}?`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="danger"
            disabled={!agreed}
            onClick={() => void remove()}
          >
            Delete
          </Button>
        </>
      }
    >
      {error !== null && (
        <ErrorBox title="The model was not deleted." error={error} />
      )}
      {versions === 0 ? (
        <p>It has no version.</p>
      ) : (
        <>
          <p>
            It has {versions.toLocaleString('en')}{' '}
            {versions === 1 ? 'version' : 'versions'}. Their checkpoints stay,
            but the experiments may delete them as all others then.
          </p>
          <label class="det-checkbox" for={id}>
            <input
              id={id}
              type="checkbox"
              checked={agreed}
              onChange={event => setAgreed(event.currentTarget.checked)}
            />
            Delete its versions, too
          </label>
        </>
      )}
    </Dialog>
  );
}

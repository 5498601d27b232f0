/** What people write down about an experiment, in Markdown. */

import { useEffect, useState } from 'preact/hooks';

import { useWorkspace } from '../app/context';
import { asError } from '../data/useLoad';
import { Button } from '../parts/button';
import { DiffView } from '../parts/diffView';
import { ErrorBox } from '../parts/errorBox';
import { Empty } from '../parts/state';
import { Markdown } from './markdown';
import { type Draft, dropDraft, keepDraft, keptDraft } from './noteDrafts';
import type { LiveExperiment } from './useExperiment';

const LONGEST = 1_000_000;

export function NotesTab({ live }: { live: LiveExperiment }) {
  const { toasts } = useWorkspace();
  const { view, change } = live;
  const saved = view.experiment?.notes ?? '';
  const [draft, showDraft] = useState<Draft | null>(() =>
    view.experiment === null ? null : keptDraft(view.experiment)
  );
  const [restored, setRestored] = useState(draft !== null);
  const [preview, setPreview] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const unsaved = draft !== null && draft.text !== draft.base;
  useEffect(() => {
    if (!unsaved) {
      return undefined;
    }
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [unsaved]);
  const setDraft = (changed: Draft) => {
    showDraft(changed);
    if (view.experiment !== null) {
      keepDraft(view.experiment, changed);
    }
  };
  if (draft === null) {
    return saved.trim() === '' ? (
      <Empty title="There are no notes yet.">
        <p>
          Write down what you tried and what came of it. Markdown is understood.
        </p>
        <Button
          look="primary"
          icon="edit"
          onClick={() => setDraft({ text: saved, base: saved })}
        >
          Write notes
        </Button>
      </Empty>
    ) : (
      <div class="det-exp-notes">
        <div class="det-exp-tools">
          <Button
            icon="edit"
            onClick={() => setDraft({ text: saved, base: saved })}
          >
            Edit
          </Button>
        </div>
        <Markdown text={saved} />
      </div>
    );
  }
  const conflict = saved !== draft.base;
  const close = () => {
    showDraft(null);
    if (view.experiment !== null) {
      dropDraft(view.experiment);
    }
    setRestored(false);
    setPreview(false);
    setError(null);
  };
  const save = async (base: string) => {
    setBusy(true);
    setError(null);
    try {
      await change({ notes: draft.text, notes_before: base });
      toasts.say('The notes are saved.');
      close();
    } catch (reason) {
      setError(asError(reason));
      live.refresh();
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="det-exp-notes">
      <div class="det-exp-tools">
        <Button
          look="primary"
          disabled={busy || conflict}
          onClick={() => void save(draft.base)}
        >
          Save
        </Button>
        <Button onClick={close}>{unsaved ? 'Discard' : 'Cancel'}</Button>
        <Button aria-pressed={preview} onClick={() => setPreview(!preview)}>
          Preview
        </Button>
        {unsaved && (
          <span class="det-exp-muted" role="status">
            {restored
              ? 'Not saved yet: this is what you wrote here before.'
              : 'Not saved yet.'}
          </span>
        )}
      </div>
      {error !== null && !conflict && (
        <ErrorBox title="The notes were not saved." error={error} />
      )}
      {conflict && (
        <div class="det-error" role="alert">
          <p class="det-error-title">
            Somebody else has changed these notes meanwhile.
          </p>
          <DiffView
            before={saved}
            after={draft.text}
            beforeLabel="As they are saved now"
            afterLabel="Yours"
          />
          <div class="det-exp-row">
            <Button
              look="danger"
              disabled={busy}
              onClick={() => void save(saved)}
            >
              Save mine in their place
            </Button>
            <Button
              onClick={() =>
                setDraft({
                  text: `${saved.trimEnd()}\n\n${draft.text}`,
                  base: saved
                })
              }
            >
              Put both together
            </Button>
            <Button onClick={close}>Leave mine away</Button>
          </div>
        </div>
      )}
      {preview ? (
        <div class="det-card">
          <Markdown text={draft.text} />
        </div>
      ) : (
        <textarea
          class="det-input det-exp-editor"
          aria-label="Notes in Markdown"
          maxLength={LONGEST}
          value={draft.text}
          onInput={event =>
            setDraft({ ...draft, text: event.currentTarget.value })
          }
          onKeyDown={event => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              void save(draft.base);
            }
          }}
        />
      )}
    </div>
  );
}

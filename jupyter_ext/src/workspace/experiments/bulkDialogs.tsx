/** Dialogs of the bar: labels that are added and removed, and the project that experiments move to. */

import { useState } from 'preact/hooks';

import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { Checkbox, TextField } from '../parts/field';
import { several } from './bulk';
import { useId } from '../parts/useId';

const LONGEST_LABEL = 100;

export interface LabelDialogProps {
  count: number;
  known: readonly string[];
  /** Labels that some of them have. */
  present: readonly string[];
  onClose: () => void;
  onLabels: (added: string[], removed: string[]) => void;
}

export function LabelDialog({
  count,
  known,
  present,
  onClose,
  onLabels
}: LabelDialogProps) {
  const [text, setText] = useState('');
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const list = useId();
  const added = [
    ...new Set(
      text
        .split(',')
        .map(label => label.trim())
        .filter(Boolean)
    )
  ];
  const tooLong = added.some(label => label.length > LONGEST_LABEL);
  const save = () => {
    onLabels(added, [...removed]);
    onClose();
  };
  return (
    <Dialog
      title={`Labels of ${several(count)}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={tooLong || added.length + removed.length === 0}
            onClick={save}
          >
            Change labels
          </Button>
        </>
      }
    >
      <TextField
        label="Add"
        hint="Several with commas between them."
        problem={
          tooLong
            ? `A label has at most ${LONGEST_LABEL} characters.`
            : undefined
        }
        list={list}
        value={text}
        onChange={setText}
      />
      <datalist id={list}>
        {known.slice(0, 200).map(label => (
          <option key={label} value={label} />
        ))}
      </datalist>
      {present.length > 0 && (
        <fieldset class="det-list-fieldset">
          <legend>Remove</legend>
          {present.map(label => (
            <Checkbox
              key={label}
              label={label}
              checked={removed.includes(label)}
              onChange={checked =>
                setRemoved(
                  checked
                    ? [...removed, label]
                    : removed.filter(each => each !== label)
                )
              }
            />
          ))}
        </fieldset>
      )}
    </Dialog>
  );
}

export interface ProjectDialogProps {
  count: number;
  known: readonly string[];
  onClose: () => void;
  onProject: (project: string) => void;
}

export function ProjectDialog({
  count,
  known,
  onClose,
  onProject
}: ProjectDialogProps) {
  const [project, setProject] = useState('');
  const list = useId();
  return (
    <Dialog
      title={`Move ${several(count)}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            onClick={() => {
              onProject(project.trim());
              onClose();
            }}
          >
            {project.trim() === '' ? 'Move out of projects' : 'Move'}
          </Button>
        </>
      }
    >
      <TextField
        label="Project"
        hint="A path of folders, such as vision/digits. Empty: in no project."
        list={list}
        value={project}
        onChange={setProject}
      />
      <datalist id={list}>
        {known.slice(0, 200).map(name => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </Dialog>
  );
}

/** Moves an experiment to another project. */

import { useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import type { ExperimentId } from '../../shared/model';
import { useApi, useWorkspace } from '../app/context';
import { asError, useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { TextField } from '../parts/field';

const LATEST = 200;

export function MoveDialog({
  id,
  project,
  onMove,
  onClose
}: {
  id: ExperimentId;
  project: string;
  /** Rejects with words for the user. */
  onMove: (project: string) => Promise<void>;
  onClose: () => void;
}) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const [wanted, setWanted] = useState(project);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const { data } = useLoad('projects', signal =>
    dataOf(
      api.GET('/api/v1/experiments', {
        params: { query: { limit: LATEST } },
        signal
      })
    )
  );
  const known = [...new Set((data ?? []).map(each => each.project ?? ''))]
    .filter(Boolean)
    .sort();
  const move = async () => {
    setBusy(true);
    try {
      await onMove(wanted.trim());
      toasts.say(
        wanted.trim() === ''
          ? `Experiment ${id} is in no project now.`
          : `Experiment ${id} is in ${wanted.trim()} now.`
      );
      onClose();
    } catch (error) {
      setProblem(asError(error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Move experiment ${id} to a project`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" disabled={busy} onClick={() => void move()}>
            Move
          </Button>
        </>
      }
    >
      <TextField
        label="Project"
        value={wanted}
        hint="Parts of a path, such as vision/digits. Leave it empty for no project."
        problem={problem}
        maxLength={1000}
        list="det-exp-projects"
        onChange={setWanted}
      />
      <datalist id="det-exp-projects">
        {known.map(name => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </Dialog>
  );
}

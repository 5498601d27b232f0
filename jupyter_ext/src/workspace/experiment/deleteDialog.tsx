/** Deletes an experiment, after saying what that frees. */

import { useState } from 'preact/hooks';

import { formatBytes } from '../../shared/format';
import type { ExperimentId } from '../../shared/model';
import { deleteExperiment, deletionOf } from '../../shared/requests';
import { HOME } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { asError, useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Loading } from '../parts/state';
import { freedBytes, freedTexts } from './deletion';

export function DeleteDialog({
  id,
  onClose
}: {
  id: ExperimentId;
  onClose: () => void;
}) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const { data, error } = useLoad(`deletion ${id}`, signal =>
    deletionOf(api, id, signal)
  );
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const obstacles = data?.obstacles ?? [];
  const remove = async () => {
    setBusy(true);
    try {
      const freed = await deleteExperiment(api, id);
      toasts.say(
        `Experiment ${id} is deleted; that frees ${formatBytes(freedBytes(freed))}.`
      );
      onClose();
      host.navigation.open(HOME, { replace: true });
    } catch (reason) {
      setRefused(asError(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Delete experiment ${id}?`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="danger"
            disabled={busy || data === null || obstacles.length > 0}
            onClick={() => void remove()}
          >
            Delete
          </Button>
        </>
      }
    >
      {error && (
        <ErrorBox
          title="What the deletion frees could not be found out."
          error={error}
        />
      )}
      {refused !== null && (
        <ErrorBox title="It was not deleted." error={refused} />
      )}
      {data === null && error === null && <Loading rows={3} />}
      {obstacles.length > 0 && (
        <>
          <p>It cannot be deleted now:</p>
          <ul class="det-exp-list">
            {obstacles.map(obstacle => (
              <li key={obstacle}>{obstacle}</li>
            ))}
          </ul>
        </>
      )}
      {data !== null && obstacles.length === 0 && (
        <>
          <p>
            This frees {formatBytes(freedBytes(data))} and cannot be undone.
          </p>
          <ul class="det-exp-list">
            {freedTexts(data).map(text => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}

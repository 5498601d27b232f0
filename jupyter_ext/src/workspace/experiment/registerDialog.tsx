/** Makes a checkpoint a version of a model in the registry. */

import { useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { shortUuid } from '../../shared/format';
import type { Checkpoint } from '../../shared/model';
import { RequestError } from '../../shared/transport';
import { addressText } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { asError, useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Select, TextField } from '../parts/field';
import { Loading } from '../parts/state';

export function RegisterDialog({
  checkpoint,
  onClose
}: {
  checkpoint: Checkpoint;
  onClose: () => void;
}) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const models = useLoad('models to register', signal =>
    dataOf(
      api.GET('/api/v1/models', {
        params: { query: { archived: false } },
        signal
      })
    )
  );
  const [chosen, setChosen] = useState('');
  const [name, setName] = useState('');
  const [version, setVersion] = useState('');
  const [error, setError] = useState<RequestError | null>(null);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const known = models.data ?? [];
  const model = chosen || name.trim();
  const register = async () => {
    setTried(true);
    if (model === '') {
      return;
    }
    setBusy(true);
    setError(null);
    try {
      if (chosen === '') {
        await dataOf(api.POST('/api/v1/models', { body: { name: model } }));
      }
      const made = await dataOf(
        api.POST('/api/v1/models/{name}/versions', {
          params: { path: { name: model } },
          body: { uuid: checkpoint.uuid, name: version.trim() }
        })
      );
      toasts.say(
        `Checkpoint ${shortUuid(checkpoint.uuid)} is version ${made.version} of ${made.model}.`
      );
      onClose();
      host.navigation.open(addressText({ page: 'model', name: made.model }));
    } catch (reason) {
      setError(asError(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Register checkpoint ${shortUuid(checkpoint.uuid)}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={busy}
            onClick={() => void register()}
          >
            Register
          </Button>
        </>
      }
    >
      {models.error && (
        <ErrorBox
          title="The models could not be loaded."
          error={models.error}
          onRetry={() => models.reload()}
        />
      )}
      {models.loading && models.data === null && <Loading rows={1} />}
      {known.length > 0 && (
        <Select
          label="Model"
          value={chosen}
          choices={[
            { value: '', label: 'a new model' },
            ...known.map(each => ({ value: each.name, label: each.name }))
          ]}
          onChange={setChosen}
        />
      )}
      {chosen === '' && (
        <TextField
          label="Name of the new model"
          value={name}
          problem={tried && model === '' ? 'A name is needed.' : ''}
          onChange={setName}
        />
      )}
      <TextField
        label="Name of the version"
        hint="May stay empty: versions are numbered."
        value={version}
        onChange={setVersion}
      />
      {error && <ErrorBox title="It was not registered." error={error} />}
    </Dialog>
  );
}

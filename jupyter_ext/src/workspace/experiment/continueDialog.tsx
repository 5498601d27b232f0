/** Goes on from a checkpoint, as a new experiment. */

import { useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { formatBytes, shortUuid } from '../../shared/format';
import type { ExperimentView } from '../../shared/model';
import { checkpointsBestFirst } from '../../shared/ranking';
import { ofExperiment } from '../../shared/requests';
import type { RequestError } from '../../shared/transport';
import { experimentAddress } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { asError } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Select, TextField } from '../parts/field';

const UNITS = ['epochs', 'batches', 'records'] as const;

/** What is wrong with a length; empty if nothing is. */
export function lengthProblem(text: string): string {
  return /^[1-9]\d{0,11}$/.test(text.trim())
    ? ''
    : 'A whole number of 1 or more.';
}

export function ContinueDialog({
  view,
  onClose
}: {
  view: ExperimentView;
  onClose: () => void;
}) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const { experiment, id } = view;
  const [unit, setUnit] = useState(unitOf(view));
  const [length, setLength] = useState('');
  const [checkpoint, setCheckpoint] = useState('');
  const [name, setName] = useState('');
  const [tried, setTried] = useState(false);
  const [error, setError] = useState<RequestError | null>(null);
  const [busy, setBusy] = useState(false);
  const problem = lengthProblem(length);
  const checkpoints = checkpointsBestFirst(
    view.checkpoints.filter(({ state }) => state === 'COMPLETED'),
    experiment?.metric ?? '',
    experiment?.smaller_is_better ?? true
  );
  const send = async () => {
    setTried(true);
    if (problem) {
      return;
    }
    setBusy(true);
    setError(null);
    try {
      const made = await dataOf(
        api.POST('/api/v1/experiments/{experiment_id}/continue', {
          params: ofExperiment(id),
          body: {
            unit,
            length: Number(length),
            ...(checkpoint ? { checkpoint } : {}),
            ...(name.trim() ? { name: name.trim() } : {})
          }
        })
      );
      toasts.say(`Experiment ${made.id} goes on from experiment ${id}.`);
      onClose();
      host.navigation.open(experimentAddress(made.id));
    } catch (reason) {
      setError(asError(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Continue experiment ${id}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" disabled={busy} onClick={() => void send()}>
            Continue
          </Button>
        </>
      }
    >
      <p>
        A new experiment with the same program begins with a checkpoint of this
        one and trains so much longer.
      </p>
      <div class="det-exp-row">
        <TextField
          label="How much longer"
          value={length}
          problem={tried ? problem : ''}
          inputMode="numeric"
          onChange={setLength}
        />
        <Select
          label="Unit"
          value={unit}
          choices={UNITS.map(value => ({ value, label: value }))}
          onChange={value =>
            setUnit(UNITS.find(each => each === value) ?? unit)
          }
        />
      </div>
      <Select
        label="Begin with"
        value={checkpoint}
        choices={[
          { value: '', label: 'the last checkpoint of the best trial' },
          ...checkpoints.map(each => ({
            value: each.uuid,
            label: `${shortUuid(each.uuid)}: trial ${each.trial_number || each.trial_id}, batch ${each.batch.toLocaleString('en')}, ${formatBytes(each.size)}`
          }))
        ]}
        onChange={setCheckpoint}
      />
      <TextField
        label="Name"
        value={name}
        placeholder={`Continuation of ${experiment?.name ?? id}`}
        maxLength={1000}
        onChange={setName}
      />
      {error && <ErrorBox title="It was not continued." error={error} />}
    </Dialog>
  );
}

/** The unit in which the experiment was to train. */
function unitOf({ experiment }: ExperimentView): (typeof UNITS)[number] {
  const { searcher } = (experiment?.config ?? {}) as {
    searcher?: { max_length?: Record<string, unknown> };
  };
  const given = Object.keys(searcher?.max_length ?? {});
  return UNITS.find(unit => given.includes(unit)) ?? 'batches';
}

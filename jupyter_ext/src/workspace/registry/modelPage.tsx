/** One model: what is said of it, and its versions side by side. */

import { useState } from 'preact/hooks';

import type { components } from '../../generated/rest';
import { dataOf } from '../../shared/api';
import { formatAgo, formatValue } from '../../shared/format';
import { addressText } from '../app/address';
import { useApi, useTitle, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Link } from '../parts/link';
import { Loading } from '../parts/state';
import { DeleteDialog, EditDialog, NOTHING } from './edit';
import type { Model, ModelVersion } from './modelFacts';
import { Labels } from './modelsPage';
import { Versions } from './versions';

type Open = 'edit' | 'register' | 'delete' | null;

export function ModelPage({ name }: { name: string }) {
  useTitle(name, `Model ${name}`);
  const api = useApi();
  const params = { path: { name } };
  const model = useLoad(`model ${name}`, signal =>
    dataOf(api.GET('/api/v1/models/{name}', { params, signal }))
  );
  const versions = useLoad(`versions of ${name}`, signal =>
    dataOf(api.GET('/api/v1/models/{name}/versions', { params, signal }))
  );
  const reload = () => {
    model.reload();
    versions.reload();
  };
  const error = model.error ?? versions.error;
  return (
    <div class="det-page-body">
      <p>
        <Link to="/models">All models</Link>
      </p>
      {error && (
        <ErrorBox
          title={`The model ${name} could not be loaded.`}
          error={error}
          onRetry={reload}
        />
      )}
      {model.data === null && model.loading && <Loading />}
      {model.data !== null && (
        <Content model={model.data} versions={versions.data} reload={reload} />
      )}
    </div>
  );
}

function Content({
  model,
  versions,
  reload
}: {
  model: Model;
  versions: readonly ModelVersion[] | null;
  reload: () => void;
}) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const params = { path: { name: model.name } };
  const change = async (body: components['schemas']['ModelChange']) => {
    const changed = await dataOf(
      api.PATCH('/api/v1/models/{name}', { params, body })
    );
    if (changed.name !== model.name) {
      const address = addressText({ page: 'model', name: changed.name });
      host.navigation.open(address, { replace: true });
    }
    reload();
  };
  const archive = async () => {
    try {
      await change({ archived: !model.archived });
    } catch (error) {
      toasts.error(error);
    }
  };
  return (
    <>
      <div class="det-page-head">
        <h1 class="det-registry-name">{model.name}</h1>
        {model.archived && <span class="det-registry-muted">archived</span>}
        <Labels labels={model.labels} />
        <div class="det-actions">
          <Button icon="add" onClick={() => setOpen('register')}>
            Register a version
          </Button>
          <Button icon="edit" onClick={() => setOpen('edit')}>
            Edit
          </Button>
          <Button icon="archive" onClick={() => void archive()}>
            {model.archived ? 'Unarchive' : 'Archive'}
          </Button>
          <Button icon="trash" look="danger" onClick={() => setOpen('delete')}>
            Delete
          </Button>
        </div>
      </div>
      {model.description && (
        <p class="det-registry-text">{model.description}</p>
      )}
      <Facts model={model} />
      <section class="det-registry-part">
        <h2>Versions</h2>
        {versions === null ? (
          <Loading rows={2} />
        ) : (
          <Versions versions={versions} reload={reload} />
        )}
      </section>
      {open === 'edit' && (
        <EditDialog
          title={`Edit ${model.name}`}
          action="Save"
          before={model}
          nameNeeded
          onSend={change}
          onClose={close}
        />
      )}
      {open === 'register' && (
        <EditDialog
          title={`Register a version of ${model.name}`}
          action="Register"
          before={{ ...NOTHING, stage: '' }}
          isNew
          uuidNeeded
          onSend={async ({ uuid = '', ...described }) => {
            const body = { uuid, ...described };
            await dataOf(
              api.POST('/api/v1/models/{name}/versions', { params, body })
            );
            reload();
          }}
          onClose={close}
        />
      )}
      {open === 'delete' && (
        <DeleteDialog
          name={model.name}
          versions={model.versions}
          onDelete={async () => {
            const query = { versions: model.versions > 0 };
            await dataOf(
              api.DELETE('/api/v1/models/{name}', {
                params: { ...params, query }
              })
            );
            toasts.say(`Deleted the model ${model.name}.`);
            host.navigation.open('/models', { replace: true });
          }}
          onClose={close}
        />
      )}
    </>
  );
}

function Facts({ model }: { model: Model }) {
  return (
    <>
      <dl class="det-facts det-registry-facts">
        <dt>Created</dt>
        <dd>{formatAgo(model.created)}</dd>
        <dt>Changed</dt>
        <dd>{formatAgo(model.updated)}</dd>
        {Object.entries(model.metadata).map(([key, value]) => (
          <Metadatum key={key} name={key} value={value} />
        ))}
      </dl>
      {model.notes && <div class="det-registry-notes">{model.notes}</div>}
    </>
  );
}

function Metadatum({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{formatValue(value)}</dd>
    </>
  );
}

/** All models of the registry: searched, filtered, sorted. */

import { useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { formatAgo, formatCount } from '../../shared/format';
import { addressText } from '../app/address';
import { useApi, useParameter, useTitle, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Checkbox, Select } from '../parts/field';
import { Link } from '../parts/link';
import { Empty, Loading } from '../parts/state';
import { EditDialog, NOTHING } from './edit';
import { chosen, labelsOf, type Model, SORTS } from './modelFacts';

export function ModelsPage() {
  useTitle('Models', 'The model registry');
  const api = useApi();
  const { navigation } = useWorkspace().host;
  const [creating, setCreating] = useState(false);
  const { data, error, loading, reload } = useLoad('models', signal =>
    dataOf(api.GET('/api/v1/models', { signal }))
  );
  return (
    <div class="det-page-body">
      <div class="det-page-head">
        <h1>Models</h1>
        <div class="det-actions">
          <Button icon="add" onClick={() => setCreating(true)}>
            New model
          </Button>
        </div>
      </div>
      {error && (
        <ErrorBox
          title="The models could not be loaded."
          error={error}
          onRetry={reload}
        />
      )}
      {data === null && loading && <Loading />}
      {data?.length === 0 && (
        <Empty title="No model is registered yet.">
          A model is a name for checkpoints that matter. Make one here, or
          register a checkpoint from an experiment’s Checkpoints tab.
        </Empty>
      )}
      {data !== null && data.length > 0 && <ModelList models={data} />}
      {creating && (
        <EditDialog
          title="New model"
          action="Create"
          before={NOTHING}
          isNew
          nameNeeded
          onSend={async body => {
            const made = await dataOf(api.POST('/api/v1/models', { body }));
            navigation.open(addressText({ page: 'model', name: made.name }));
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </div>
  );
}

function ModelList({ models }: { models: readonly Model[] }) {
  const [text, setText] = useParameter('search');
  const [label, setLabel] = useParameter('label');
  const [archived, setArchived] = useParameter('archived');
  const [sort, setSort] = useParameter('sort', 'name');
  const shown = chosen(models, {
    text,
    label,
    sort,
    archived: archived === '1'
  });
  return (
    <>
      <div class="det-registry-tools">
        <input
          class="det-input"
          type="search"
          placeholder="Search"
          aria-label="Search models"
          value={text}
          onInput={event => setText(event.currentTarget.value)}
        />
        <Select
          label="Label"
          value={label}
          choices={[
            { value: '', label: 'All' },
            ...labelsOf(models).map(each => ({ value: each, label: each }))
          ]}
          onChange={setLabel}
        />
        <Select
          label="Sort by"
          value={sort}
          choices={SORTS}
          onChange={setSort}
        />
        <Checkbox
          label="Archived, too"
          checked={archived === '1'}
          onChange={checked => setArchived(checked ? '1' : '')}
        />
      </div>
      {shown.length === 0 ? (
        <Empty title="No model fits.">
          <Button
            onClick={() => {
              setText('');
              setLabel('');
            }}
          >
            Show all
          </Button>
        </Empty>
      ) : (
        <div
          class="det-registry-scroll"
          tabIndex={0}
          role="region"
          aria-label="Models"
        >
          <table class="det-grid" aria-label="Models">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Description</th>
                <th scope="col">Labels</th>
                <th scope="col" class="det-number">
                  Versions
                </th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(model => (
                <tr key={model.name}>
                  <td class="det-registry-name">
                    <Link to={addressText({ page: 'model', name: model.name })}>
                      {model.name}
                    </Link>
                    {model.archived && (
                      <span class="det-registry-muted"> (archived)</span>
                    )}
                  </td>
                  <td class="det-registry-text">{model.description}</td>
                  <td>
                    <Labels labels={model.labels} />
                  </td>
                  <td class="det-number">{formatCount(model.versions)}</td>
                  <td>{formatAgo(model.updated)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

export function Labels({ labels }: { labels: readonly string[] }) {
  return (
    <span class="det-registry-labels">
      {labels.map(label => (
        <span key={label} class="det-registry-label">
          {label}
        </span>
      ))}
    </span>
  );
}

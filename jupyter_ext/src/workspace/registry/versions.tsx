/** The versions of a model in one table: where each is from, and what it has come to. */

import { useRef, useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatValue,
  shortUuid
} from '../../shared/format';
import { checkpointFileAddress } from '../../shared/requests';
import { experimentAddress } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { Button, IconButton } from '../parts/button';
import { confirm, Dialog } from '../parts/dialog';
import { Link } from '../parts/link';
import { Empty } from '../parts/state';
import { EditDialog } from './edit';
import { metricNames, type ModelVersion } from './modelFacts';
import { Labels } from './modelsPage';

interface VersionsProps {
  versions: readonly ModelVersion[];
  reload: () => void;
}

export function Versions({ versions, reload }: VersionsProps) {
  const metrics = metricNames(versions);
  if (versions.length === 0) {
    return (
      <Empty title="No version is registered yet.">
        Register a checkpoint by its id here, or from an experiment’s
        Checkpoints tab.
      </Empty>
    );
  }
  return (
    <div
      class="det-registry-scroll"
      tabIndex={0}
      role="region"
      aria-label="Versions"
    >
      <table class="det-grid" aria-label="Versions">
        <thead>
          <tr>
            <th scope="col" class="det-number">
              Version
            </th>
            <th scope="col">Name</th>
            <th scope="col">Stage</th>
            {metrics.map(name => (
              <th key={name} scope="col" class="det-number">
                {name}
              </th>
            ))}
            <th scope="col">From</th>
            <th scope="col">Checkpoint</th>
            <th scope="col">Registered</th>
            <th scope="col">
              <span class="det-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {versions.map(version => (
            <VersionRow
              key={version.version}
              version={version}
              metrics={metrics}
              reload={reload}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function VersionRow({
  version,
  metrics,
  reload
}: {
  version: ModelVersion;
  metrics: readonly string[];
  reload: () => void;
}) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const root = useRef<HTMLTableRowElement>(null);
  const [open, setOpen] = useState<'edit' | 'files' | null>(null);
  const { checkpoint } = version;
  const path = '/api/v1/models/{name}/versions/{version}';
  const params = { path: { name: version.model, version: version.version } };
  const remove = async () => {
    const agreed = await confirm(root.current!, {
      title: `Delete version ${version.version} of ${version.model}?`,
      body: 'Its checkpoint stays, but may be deleted as all others of its experiment then.',
      action: 'Delete',
      danger: true
    });
    if (agreed) {
      try {
        await dataOf(api.DELETE(path, { params }));
      } catch (error) {
        toasts.error(error);
      }
      reload();
    }
  };
  return (
    <tr ref={root}>
      <td class="det-number">{version.version}</td>
      <td class="det-registry-text">
        {version.name || '—'} <Labels labels={version.labels} />
        {version.description && <div>{version.description}</div>}
        {version.notes && (
          <details>
            <summary>Notes</summary>
            <div class="det-registry-notes">{version.notes}</div>
          </details>
        )}
      </td>
      <td>{version.stage || '—'}</td>
      {metrics.map(name => (
        <td key={name} class="det-number">
          {formatValue(checkpoint.metrics[name])}
        </td>
      ))}
      <td>
        <Link to={experimentAddress(checkpoint.experiment_id)}>
          #{checkpoint.experiment_id}
        </Link>
        , trial {checkpoint.trial_number || checkpoint.trial_id}, batch{' '}
        {formatCount(checkpoint.batch)}
      </td>
      <td>
        <Link to={experimentAddress(checkpoint.experiment_id, 'checkpoints')}>
          <code>{shortUuid(checkpoint.uuid)}</code>
        </Link>
        , {formatBytes(checkpoint.size)}
      </td>
      <td>{formatAgo(version.created)}</td>
      <td class="det-registry-actions">
        <IconButton
          icon="download"
          label={`Download version ${version.version}`}
          onClick={() => setOpen('files')}
        />
        <IconButton
          icon="edit"
          label={`Edit version ${version.version}`}
          onClick={() => setOpen('edit')}
        />
        <IconButton
          icon="trash"
          label={`Delete version ${version.version}`}
          onClick={() => void remove()}
        />
        {open === 'edit' && (
          <EditDialog
            title={`Edit version ${version.version}`}
            action="Save"
            before={version}
            onSend={async body => {
              await dataOf(api.PATCH(path, { params, body }));
              reload();
            }}
            onClose={() => setOpen(null)}
          />
        )}
        {open === 'files' && (
          <FilesDialog version={version} onClose={() => setOpen(null)} />
        )}
      </td>
    </tr>
  );
}

function FilesDialog({
  version,
  onClose
}: {
  version: ModelVersion;
  onClose: () => void;
}) {
  const { host, toasts } = useWorkspace();
  const { uuid, manifest } = version.checkpoint;
  return (
    <Dialog
      title={`Files of version ${version.version}`}
      onClose={onClose}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <ul class="det-registry-files">
        {manifest.files?.map(({ path, size }) => (
          <li key={path}>
            <Button
              icon="download"
              look="quiet"
              onClick={() =>
                void host
                  .download(checkpointFileAddress(uuid, path))
                  .catch((error: unknown) => toasts.error(error))
              }
            >
              {path}
            </Button>{' '}
            {formatBytes(size)}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

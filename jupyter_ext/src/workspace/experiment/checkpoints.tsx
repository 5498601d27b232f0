/** The checkpoints of an experiment: saved, checked, named in the registry, kept, deleted, loaded. */

import { useRef, useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { bestCheckpoint, checkpointMetric } from '../../shared/facts';
import {
  formatAgo,
  formatBytes,
  formatValue,
  shortUuid
} from '../../shared/format';
import type { Checkpoint, ExperimentView } from '../../shared/model';
import { checkpointFileAddress } from '../../shared/requests';
import { useApi, useParameter, useWorkspace } from '../app/context';
import { confirm } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Menu, type MenuItem } from '../parts/menu';
import { Empty } from '../parts/state';
import { RegisterDialog } from './registerDialog';
import { sorted, type TableColumn, VirtualTable } from './virtualTable';

/** What this page knows of a checkpoint before the feed does. */
type Changes = Readonly<Record<string, Partial<Checkpoint>>>;

export function CheckpointsTab({ view }: { view: ExperimentView }) {
  const [order, setOrder] = useParameter('sort', '-created');
  const [changes, setChanges] = useState<Changes>({});
  const [checked, setChecked] = useState<Readonly<Record<string, string>>>({});
  const [registered, setRegistered] = useState<Checkpoint | null>(null);
  const { experiment } = view;
  const rows = view.checkpoints
    .map(each => ({ ...each, ...changes[each.uuid] }))
    .filter(({ state }) => state === 'COMPLETED');
  if (rows.length === 0) {
    return (
      <Empty title="There are no checkpoints yet.">
        One is written at each validation or checkpoint period, and at the end.
      </Empty>
    );
  }
  const metric = experiment?.metric ?? '';
  const best = bestCheckpoint(
    rows,
    metric,
    experiment?.smaller_is_better ?? true
  );
  const columns: Array<TableColumn<Checkpoint>> = [
    {
      name: 'uuid',
      title: 'Checkpoint',
      cell: each => (
        <span class="det-exp-nowrap" title={each.uuid}>
          <code>{shortUuid(each.uuid)}</code>{' '}
          {each.uuid === best?.uuid && <span class="det-exp-tag">best</span>}{' '}
          {each.pinned && (
            <span class="det-exp-tag">
              <Icon name="pin" /> pinned
            </span>
          )}
        </span>
      )
    },
    {
      name: 'trial',
      title: 'Trial',
      numeric: true,
      value: each => each.trial_number || each.trial_id,
      cell: each => each.trial_number || each.trial_id
    },
    {
      name: 'batch',
      title: 'Batch',
      numeric: true,
      value: each => each.batch,
      cell: each => each.batch.toLocaleString('en')
    },
    {
      name: 'metric',
      title: metric || 'Metric',
      numeric: true,
      value: each => {
        const value = checkpointMetric(each, metric)?.value;
        return typeof value === 'number' ? value : null;
      },
      cell: each => {
        const found = checkpointMetric(each, metric);
        return found === null
          ? '—'
          : found.name === metric
            ? formatValue(found.value)
            : `${found.name} ${formatValue(found.value)}`;
      }
    },
    {
      name: 'size',
      title: 'Size',
      numeric: true,
      value: each => each.size,
      cell: each => formatBytes(each.size)
    },
    {
      name: 'created',
      title: 'Written',
      value: each => each.created,
      cell: each => (
        <span title={new Date(each.created).toLocaleString()}>
          {formatAgo(each.created)}
        </span>
      )
    },
    {
      name: 'checked',
      title: 'Content',
      cell: each => checked[each.uuid] ?? ''
    },
    {
      name: 'actions',
      title: 'Actions',
      cell: each => (
        <RowActions
          view={view}
          checkpoint={each}
          onChange={change =>
            setChanges({
              ...changes,
              [each.uuid]: { ...changes[each.uuid], ...change }
            })
          }
          onChecked={text => setChecked({ ...checked, [each.uuid]: text })}
          onRegister={() => setRegistered(each)}
        />
      )
    }
  ];
  return (
    <>
      <VirtualTable
        label="Checkpoints"
        rows={sorted(rows, columns, order)}
        columns={columns}
        rowKey={({ uuid }) => uuid}
        order={order}
        onOrder={setOrder}
      />
      {registered && (
        <RegisterDialog
          checkpoint={registered}
          onClose={() => setRegistered(null)}
        />
      )}
    </>
  );
}

function RowActions({
  view,
  checkpoint,
  onChange,
  onChecked,
  onRegister
}: {
  view: ExperimentView;
  checkpoint: Checkpoint;
  onChange: (change: Partial<Checkpoint>) => void;
  onChecked: (text: string) => void;
  onRegister: () => void;
}) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const root = useRef<HTMLSpanElement>(null);
  const { uuid } = checkpoint;
  const name = shortUuid(uuid);
  const path = '/api/v1/checkpoints/{uuid}';
  const params = { path: { uuid } };
  const tell = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      toasts.error(error);
    }
  };
  const verify = () =>
    tell(async () => {
      onChecked('Reading…');
      try {
        const found = await dataOf(api.POST(`${path}/verify`, { params }));
        onChecked(
          found.ok
            ? `Whole: ${found.files} ${found.files === 1 ? 'file' : 'files'}`
            : `Damaged: ${found.problem}`
        );
      } catch (error) {
        onChecked('');
        throw error;
      }
    });
  const pin = () =>
    tell(async () => {
      await dataOf(
        api.PATCH(path, { params, body: { pinned: !checkpoint.pinned } })
      );
      onChange({ pinned: !checkpoint.pinned });
    });
  const remove = () =>
    tell(async () => {
      const agreed = await confirm(root.current!, {
        title: `Delete checkpoint ${name}?`,
        body: `Its files (${formatBytes(checkpoint.size)}) go. This cannot be undone.`,
        action: 'Delete',
        danger: true
      });
      if (agreed) {
        await dataOf(api.DELETE(path, { params }));
        onChange({ state: 'DELETED' });
        toasts.say(`Checkpoint ${name} is deleted.`);
      }
    });
  const files = checkpoint.manifest.files ?? [];
  const save = () =>
    tell(async () => {
      for (const file of files) {
        await host.download(checkpointFileAddress(uuid, file.path));
      }
    });
  const items: MenuItem[] = [];
  if (host.loadIntoNotebook) {
    items.push({
      label: 'Load into notebook',
      icon: 'forward',
      onChoose: () =>
        void tell(
          () =>
            host.loadIntoNotebook?.(view.id, checkpoint) ?? Promise.resolve()
        )
    });
  }
  items.push({
    label: `Download ${files.length === 1 ? 'its file' : `its ${files.length} files`}`,
    icon: 'download',
    ...(files.length === 0 ? { disabled: 'It has no files.' } : {}),
    onChoose: () => void save()
  });
  items.push(
    { label: 'Verify', icon: 'refresh', onChoose: () => void verify() },
    { label: 'Register as a model…', icon: 'add', onChoose: onRegister },
    {
      label: checkpoint.pinned ? 'Unpin' : 'Pin: keep it always',
      icon: 'pin',
      onChoose: () => void pin()
    },
    {
      label: 'Delete…',
      icon: 'trash',
      danger: true,
      ...(checkpoint.pinned ? { disabled: 'It is pinned.' } : {}),
      onChoose: () => void remove()
    }
  );
  return (
    <span ref={root} class="det-exp-rowactions">
      <Menu label={`Actions for checkpoint ${name}`} compact items={items} />
    </span>
  );
}

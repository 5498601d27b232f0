/** What takes the disk of the master, and what of it can go. */

import { useState } from 'preact/hooks';

import type { components } from '../../generated/rest';
import { dataOf } from '../../shared/api';
import { formatBytes, formatCount } from '../../shared/format';
import { useApi, useWorkspace } from '../app/context';
import { type Loaded, useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Loading } from '../parts/state';
import { Meter } from './slots';

type Space = components['schemas']['Space'];

/** It is measured anew at most so often: a large home takes seconds. */
const MAX_AGE_SECONDS = 60;

/** What can be cleaned, in words; the names are those of `det clean`. */
const KINDS = {
  blobs: 'Parts of programs and data that no experiment uses',
  caches: 'Cached data sets and environments',
  runs: 'Working folders of ended runs',
  uploads: 'Uploads that have not arrived whole'
} as const;
type Kind = keyof typeof KINDS;

export function Disk() {
  const api = useApi();
  const space = useLoad('space', signal =>
    dataOf(
      api.GET('/api/v1/space', {
        params: { query: { max_age: MAX_AGE_SECONDS } },
        signal
      })
    )
  );
  const [open, setOpen] = useState(false);
  const { data, error, loading, reload } = space;
  return (
    <section class="det-cluster-part">
      <div class="det-page-head">
        <h2>Disk</h2>
        <div class="det-actions">
          <Button icon="trash" onClick={() => setOpen(true)}>
            Clean up
          </Button>
        </div>
      </div>
      {error && (
        <ErrorBox
          title="What takes the disk could not be loaded."
          error={error}
          onRetry={reload}
        />
      )}
      {data === null && loading && <Loading label="Measuring the disk…" />}
      {data !== null && <Uses space={data} />}
      {open && <CleanDialog space={space} onClose={() => setOpen(false)} />}
    </section>
  );
}

function Uses({ space }: { space: Space }) {
  const { uses, total, free, budget } = space;
  const of = budget ? ` of ${formatBytes(budget)} allowed` : '';
  const left = typeof free === 'number' ? `, ${formatBytes(free)} free` : '';
  const rows = uses
    .filter(({ bytes, count }) => bytes > 0 || count > 0)
    .toSorted((one, other) => other.bytes - one.bytes);
  return (
    <>
      <p class="det-cluster-muted">
        {formatBytes(total)}
        {of}
        {left} in {space.home}
      </p>
      <div
        class="det-cluster-scroll"
        tabIndex={0}
        role="region"
        aria-label="Disk by kind"
      >
        <table class="det-grid" aria-label="Disk by kind">
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">Size</th>
              <th scope="col" class="det-number">
                Number
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ kind, bytes, count, part_of: whole }) => (
              <tr key={kind}>
                <td>
                  {kind}
                  {whole && (
                    <span class="det-cluster-muted"> (part of {whole})</span>
                  )}
                </td>
                <td>
                  <Meter
                    label={kind}
                    share={total > 0 ? bytes / total : null}
                    text={formatBytes(bytes)}
                  />
                </td>
                <td class="det-number">{formatCount(count)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** What would go is said first; only then it goes. */
function CleanDialog({
  space,
  onClose
}: {
  space: Loaded<Space>;
  onClose: () => void;
}) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const [busy, setBusy] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    new Set(Object.keys(KINDS))
  );
  const clean = (kinds: Kind[], dryRun: boolean) =>
    dataOf(
      api.POST('/api/v1/space/clean', { body: { kinds, dry_run: dryRun } })
    );
  const preview = useLoad('clean', () =>
    clean(Object.keys(KINDS) as Kind[], true)
  );
  const found = preview.data?.kinds ?? [];
  const picked = found.filter(({ kind }) => chosen.has(kind));
  const bytes = picked.reduce((sum, kind) => sum + kind.bytes, 0);

  async function run(): Promise<void> {
    setBusy(true);
    try {
      const kinds = picked.map(({ kind }) => kind as Kind);
      const done = await clean(kinds, false);
      const freed = done.kinds.reduce((sum, kind) => sum + kind.bytes, 0);
      toasts.say(`Freed ${formatBytes(freed)}.`);
      space.reload();
      onClose();
    } catch (error) {
      toasts.error(error);
      setBusy(false);
    }
  }

  return (
    <Dialog
      title="Clean up the disk"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="danger"
            disabled={busy || picked.every(({ count }) => count === 0)}
            onClick={() => void run()}
          >
            Delete {formatBytes(bytes)}
          </Button>
        </>
      }
    >
      {preview.error && (
        <ErrorBox
          title="What can go could not be worked out."
          error={preview.error}
          onRetry={preview.reload}
        />
      )}
      {preview.loading && <Loading label="Working out what can go…" />}
      {found.map(({ kind, bytes: size, count, kept }) => (
        <label key={kind} class="det-checkbox">
          <input
            type="checkbox"
            checked={chosen.has(kind)}
            onChange={event => {
              const next = new Set(chosen);
              next[event.currentTarget.checked ? 'add' : 'delete'](kind);
              setChosen(next);
            }}
          />
          <span>
            {KINDS[kind as Kind] ?? kind}: {formatBytes(size)} in{' '}
            {formatCount(count)}
            {kept && <span class="det-cluster-muted"> ({kept})</span>}
          </span>
        </label>
      ))}
      <p class="det-cluster-muted">
        Experiments, checkpoints and logs stay. What is deleted cannot be
        brought back.
      </p>
    </Dialog>
  );
}

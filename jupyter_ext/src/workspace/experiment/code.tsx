/** The program of an experiment: the cells that ran, or the command, and the files that were sent along. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { components } from '../../generated/rest';
import { capitalised, cellName, formatBytes } from '../../shared/format';
import type { ExperimentView } from '../../shared/model';
import { blobContent, bundleManifest } from '../../shared/requests';
import { useApi, useParameter, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Select } from '../parts/field';
import { Empty, Loading } from '../parts/state';
import { CellsDiff } from './cellsDiff';
import { highlighted } from './highlight';

type Cell = components['schemas']['Cell'];

const LARGEST_SHOWN = 256 * 1024;

/** `Cell [3]`; `Cell 2 of the program` where it has no number in the notebook. */
export function cellTitle(cell: Cell, index: number): string {
  return cell.number === null || cell.number === undefined
    ? `Cell ${index + 1} of the program`
    : capitalised(cellName(cell.number));
}

export function CodeTab({ view }: { view: ExperimentView }) {
  const api = useApi();
  const { host } = useWorkspace();
  const [shown, setShown] = useParameter('show', '', { push: true });
  const [wanted] = useParameter('cell');
  const id = view.experiment?.bundle_id ?? null;
  const bundle = useLoad(id === null ? null : `bundle ${id}`, signal =>
    bundleManifest(api, id ?? '', signal)
  );
  const root = useRef<HTMLDivElement>(null);
  const loaded = bundle.data !== null;
  useEffect(() => {
    if (wanted !== '' && loaded) {
      const cell = root.current?.querySelector<HTMLElement>(
        `[data-cell="${CSS.escape(wanted)}"]`
      );
      cell?.scrollIntoView?.({ block: 'start' });
      cell?.focus({ preventScroll: true });
    }
  }, [wanted, loaded]);
  if (bundle.error) {
    return (
      <ErrorBox
        title="The program could not be loaded."
        error={bundle.error}
        onRetry={() => bundle.reload()}
      />
    );
  }
  if (bundle.data === null) {
    return <Loading rows={8} label="Loading the program…" />;
  }
  const { program, files = [], links = [], values = [] } = bundle.data;
  const cells = program.cells ?? [];
  const text = cells
    .map((cell, index) => `# %% ${cellTitle(cell, index)}\n${cell.source}`)
    .join('\n\n');
  return (
    <div ref={root}>
      {cells.length > 0 && (
        <div class="det-exp-tools">
          {host.notebookCells && (
            <Select
              label="Show"
              value={shown}
              choices={[
                { value: '', label: 'The cells that ran' },
                { value: 'diff', label: 'Changes in the notebook since' }
              ]}
              onChange={setShown}
            />
          )}
          <CopyButton text={text} />
        </div>
      )}
      {shown === 'diff' && host.notebookCells ? (
        <CellsDiff ran={cells.map(({ source }) => source)} />
      ) : (
        cells.map((cell, index) => (
          <section
            key={index}
            class="det-exp-cell"
            data-cell={cell.number ?? ''}
            tabIndex={-1}
            aria-label={cellTitle(cell, index)}
          >
            <h2>{cellTitle(cell, index)}</h2>
            <Source text={cell.source} />
          </section>
        ))
      )}
      {cells.length === 0 && (
        <section class="det-exp-cell" aria-label="Command">
          <h2>Command</h2>
          <pre class="det-exp-code" tabIndex={0}>
            {(program.command ?? []).join(' ')}
          </pre>
        </section>
      )}
      {files.length > 0 && <Sent title="Files that were sent" files={files} />}
      {links.length > 0 && (
        <Listing
          title="Files of the cluster’s store of data"
          rows={links.map(({ path, size }) => [path, formatBytes(size)])}
        />
      )}
      {values.length > 0 && (
        <Listing
          title="Values that were sent"
          rows={values.map(({ name, codec, size }) => [
            name,
            `${codec}, ${formatBytes(size)}`
          ])}
        />
      )}
      {cells.length + files.length === 0 && !program.command?.length && (
        <Empty title="This experiment has no program." />
      )}
    </div>
  );
}

function CopyButton({ text }: { text: string }) {
  const { toasts } = useWorkspace();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toasts.say('The code is copied.');
    } catch {
      toasts.error(new Error('The browser does not copy here.'));
    }
  };
  return (
    <Button icon="copy" onClick={() => void copy()}>
      Copy
    </Button>
  );
}

/** Python, its words in colours. */
export function Source({ text }: { text: string }) {
  const parts = useMemo(() => highlighted(text), [text]);
  return (
    <pre class="det-exp-code" tabIndex={0}>
      {parts.map(({ text: part, kind }, index) =>
        kind === '' ? (
          part
        ) : (
          <span key={index} data-kind={kind}>
            {part}
          </span>
        )
      )}
    </pre>
  );
}

function Sent({
  title,
  files
}: {
  title: string;
  files: ReadonlyArray<{ path: string; size: number; sha256: string }>;
}) {
  return (
    <section class="det-exp-cell" aria-label={title}>
      <h2>
        {title} ({files.length.toLocaleString('en')})
      </h2>
      {files.slice(0, 500).map(file => (
        <SentFile key={file.path} file={file} />
      ))}
      {files.length > 500 && (
        <p class="det-exp-muted">
          and {(files.length - 500).toLocaleString('en')} more
        </p>
      )}
    </section>
  );
}

function SentFile({
  file: { path, size, sha256 }
}: {
  file: { path: string; size: number; sha256: string };
}) {
  const api = useApi();
  const [open, setOpen] = useState(false);
  const content = useLoad(
    open && size <= LARGEST_SHOWN ? `blob ${sha256}` : null,
    async signal => {
      const blob = await blobContent(api, sha256, signal);
      const bytes = new Uint8Array(await blob.arrayBuffer());
      return bytes.includes(0) ? null : new TextDecoder().decode(bytes);
    }
  );
  return (
    <details
      class="det-exp-fold"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>
        {path} <span class="det-exp-muted">{formatBytes(size)}</span>
      </summary>
      {size > LARGEST_SHOWN && (
        <p class="det-exp-muted">
          Too large to be shown here; det experiment code prints it.
        </p>
      )}
      {content.error && (
        <ErrorBox title="It could not be loaded." error={content.error} />
      )}
      {content.loading && <Loading rows={2} />}
      {content.data !== null &&
        (path.endsWith('.py') ? (
          <Source text={content.data} />
        ) : (
          <pre class="det-exp-code" tabIndex={0}>
            {content.data}
          </pre>
        ))}
      {open &&
        !content.loading &&
        content.data === null &&
        content.error === null &&
        size <= LARGEST_SHOWN && (
          <p class="det-exp-muted">This file is no text.</p>
        )}
    </details>
  );
}

function Listing({
  title,
  rows
}: {
  title: string;
  rows: ReadonlyArray<readonly string[]>;
}) {
  return (
    <section class="det-exp-cell" aria-label={title}>
      <h2>{title}</h2>
      <table class="det-grid" aria-label={title}>
        <tbody>
          {rows.slice(0, 500).map(([name, facts], index) => (
            <tr key={index}>
              <td>{name}</td>
              <td class="det-exp-muted">{facts}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

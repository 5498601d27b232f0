/** The files that the training wrote: their folders, and a look into each. */

import { useEffect, useMemo, useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { formatBytes } from '../../shared/format';
import type { Artifact, ExperimentView } from '../../shared/model';
import { fileName, outputsTrial } from '../../shared/outputs';
import { artifactAddress, ofTrial } from '../../shared/requests';
import { useApi, useParameter, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Empty, Loading } from '../parts/state';
import {
  csvRows,
  type FileNode,
  fileTree,
  LARGEST_PREVIEW,
  pictureType,
  previewKind
} from './fileTree';
import { TrialSelect } from './trialSelect';

export function FilesTab({ view }: { view: ExperimentView }) {
  const api = useApi();
  const [trial, setTrial] = useParameter('trial');
  const [opened, setOpened] = useParameter('file', '', { push: true });
  const owner = trial === '' ? outputsTrial(view) : Number(trial);
  const files = useLoad(
    owner === null ? null : `files of ${view.id} ${owner}`,
    signal =>
      dataOf(
        api.GET('/api/v1/trials/{trial_id}/artifacts', {
          params: ofTrial(owner ?? 0),
          signal
        })
      ),
    [view.id]
  );
  const tree = useMemo(() => fileTree(files.data ?? []), [files.data]);
  const file = files.data?.find(each => each.path === opened);
  const bytes = (files.data ?? []).reduce((sum, { size }) => sum + size, 0);
  return (
    <>
      <div class="det-exp-tools">
        <TrialSelect
          view={view}
          label="Trial"
          value={trial}
          automatic="The best one"
          onChange={value => {
            setOpened('', { push: false });
            setTrial(value);
          }}
        />
        {files.data && files.data.length > 0 && (
          <span class="det-exp-muted">
            {files.data.length.toLocaleString('en')}{' '}
            {files.data.length === 1 ? 'file' : 'files'}, {formatBytes(bytes)}
          </span>
        )}
      </div>
      {files.error && (
        <ErrorBox
          title="The files could not be listed."
          error={files.error}
          onRetry={() => files.reload()}
        />
      )}
      {files.data === null && files.loading && (
        <Loading label="Loading the files…" />
      )}
      {(owner === null || files.data?.length === 0) && (
        <Empty title="This trial has written no files.">
          What its code writes below its working directory is listed here.
        </Empty>
      )}
      {tree.length > 0 && (
        <div class="det-exp-files">
          <nav aria-label="Files" class="det-exp-tree">
            <Tree nodes={tree} opened={opened} onOpen={setOpened} />
          </nav>
          <div class="det-exp-preview">
            {file && owner !== null ? (
              <Preview key={file.path} file={file} trialId={owner} />
            ) : (
              <Empty title="Choose a file to look into it." />
            )}
          </div>
        </div>
      )}
    </>
  );
}

function Tree({
  nodes,
  opened,
  onOpen
}: {
  nodes: readonly FileNode[];
  opened: string;
  onOpen: (path: string) => void;
}) {
  return (
    <ul>
      {nodes.map(node => (
        <li key={node.path}>
          {node.children.length > 0 ? (
            <details open={nodes.length < 20}>
              <summary>
                {node.name}/{' '}
                <span class="det-exp-muted">{formatBytes(node.size)}</span>
              </summary>
              <Tree nodes={node.children} opened={opened} onOpen={onOpen} />
            </details>
          ) : (
            <button
              type="button"
              class="det-exp-file"
              aria-current={node.path === opened}
              onClick={() => onOpen(node.path)}
            >
              <span>{node.name}</span>
              <span class="det-exp-muted">{formatBytes(node.size)}</span>
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Preview({ file, trialId }: { file: Artifact; trialId: number }) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const kept = file.note === '';
  const kind = kept ? previewKind(file) : 'none';
  const content = useLoad(
    kind === 'none' ? null : `file ${trialId} ${file.path} ${file.sha256}`,
    signal =>
      dataOf(
        api.GET('/api/v1/trials/{trial_id}/artifacts/content', {
          params: { ...ofTrial(trialId), query: { path: file.path } },
          parseAs: 'blob',
          signal
        })
      )
  );
  const save = () =>
    host
      .download(artifactAddress(trialId, file.path), fileName(file))
      .catch((error: unknown) => toasts.error(error));
  return (
    <>
      <div class="det-page-head">
        <h2 title={file.path}>{file.path}</h2>
        <span class="det-exp-muted">
          {formatBytes(file.size)}, after batch{' '}
          {file.batch.toLocaleString('en')}
        </span>
        {kept && (
          <div class="det-actions">
            <Button icon="download" onClick={() => void save()}>
              Download
            </Button>
          </div>
        )}
      </div>
      {file.note && <p class="det-exp-notice">{file.note}</p>}
      {kept && kind === 'none' && (
        <p class="det-exp-muted">
          {file.size > LARGEST_PREVIEW
            ? 'It is too large to be shown here.'
            : 'A file of this kind is not shown here.'}
        </p>
      )}
      {content.error && (
        <ErrorBox
          title="The file could not be loaded."
          error={content.error}
          onRetry={() => content.reload()}
        />
      )}
      {content.loading && <Loading rows={3} />}
      {content.data && kind === 'picture' && (
        <Picture content={content.data} path={file.path} />
      )}
      {content.data && kind !== 'picture' && (
        <Text
          content={content.data}
          path={file.path}
          table={kind === 'table'}
        />
      )}
    </>
  );
}

/** A picture, as a picture only: a script in an SVG does not run there. */
function Picture({ content, path }: { content: Blob; path: string }) {
  const [address, setAddress] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(
      new Blob([content], { type: pictureType(path) })
    );
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [content, path]);
  return address === '' ? null : (
    <img class="det-exp-picture" src={address} alt={path} />
  );
}

const MOST_LETTERS = 500_000;
const MOST_ROWS = 500;

function Text({
  content,
  path,
  table
}: {
  content: Blob;
  path: string;
  table: boolean;
}) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let shown = true;
    void content.arrayBuffer().then(bytes => {
      if (shown) {
        const binary = new Uint8Array(bytes.slice(0, 8192)).includes(0);
        setText(binary ? '\0' : new TextDecoder().decode(bytes));
      }
    });
    return () => {
      shown = false;
    };
  }, [content]);
  if (text === null) {
    return <Loading rows={3} />;
  }
  if (text === '\0') {
    return <p class="det-exp-muted">This file is no text.</p>;
  }
  if (!table) {
    return (
      <>
        <pre class="det-exp-code" tabIndex={0} aria-label={path}>
          {text.slice(0, MOST_LETTERS)}
        </pre>
        {text.length > MOST_LETTERS && (
          <p class="det-exp-muted">Only its beginning is shown.</p>
        )}
      </>
    );
  }
  const rows = csvRows(text, path.endsWith('.tsv') ? '\t' : ',', MOST_ROWS + 2);
  const [head = [], ...body] = rows;
  return (
    <div class="det-exp-scroll" tabIndex={0} role="region" aria-label={path}>
      <table class="det-grid" aria-label={path}>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.slice(0, MOST_ROWS).map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {body.length > MOST_ROWS && (
        <p class="det-exp-muted">Only its first {MOST_ROWS} rows are shown.</p>
      )}
    </div>
  );
}

/** Files by their folders, and what of a file can be looked at. Pure. */

import type { Artifact } from '../../shared/model';

export interface FileNode {
  readonly name: string;
  readonly path: string;
  /** Bytes of it, or of all below it. */
  readonly size: number;
  readonly file: Artifact | null;
  readonly children: readonly FileNode[];
}

interface Draft {
  readonly name: string;
  readonly path: string;
  file: Artifact | null;
  readonly children: Map<string, Draft>;
}

/** Folders first, then files, each by name. */
export function fileTree(files: readonly Artifact[]): FileNode[] {
  const root: Draft = draft('', '');
  for (const file of files) {
    let at = root;
    for (const name of file.path.split('/').filter(Boolean)) {
      const path = at.path === '' ? name : `${at.path}/${name}`;
      const next = at.children.get(name) ?? draft(name, path);
      at.children.set(name, next);
      at = next;
    }
    at.file = file;
  }
  return nodesOf(root);
}

function draft(name: string, path: string): Draft {
  return { name, path, file: null, children: new Map() };
}

function nodesOf({ children }: Draft): FileNode[] {
  return [...children.values()]
    .map(({ name, path, file, children: below }): FileNode => {
      const inner = nodesOf({ name, path, file, children: below });
      const size = inner.reduce((sum, each) => sum + each.size, 0);
      return {
        name,
        path,
        file,
        size: (file?.size ?? 0) + size,
        children: inner
      };
    })
    .sort(
      (first, second) =>
        Number(first.children.length === 0) -
          Number(second.children.length === 0) ||
        first.name.localeCompare(second.name, 'en', { numeric: true })
    );
}

export type PreviewKind = 'picture' | 'table' | 'text' | 'none';

const PICTURES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  svg: 'image/svg+xml'
};
const TABLES = new Set(['csv', 'tsv']);
const BINARY = new Set(
  'keras h5 hdf5 pt pth ckpt safetensors npz npy zip gz tar pkl pickle bin onnx pb parquet db'.split(
    ' '
  )
);

/** Larger files are only saved. */
export const LARGEST_PREVIEW = 2_000_000;

function endingOf(path: string): string {
  const name = path.split('/').at(-1) ?? '';
  return name.includes('.') ? name.split('.').at(-1)!.toLowerCase() : '';
}

export function previewKind({ path, size }: Artifact): PreviewKind {
  const ending = endingOf(path);
  if (size > LARGEST_PREVIEW || BINARY.has(ending)) {
    return 'none';
  }
  if (ending in PICTURES) {
    return 'picture';
  }
  return TABLES.has(ending) ? 'table' : 'text';
}

export function pictureType(path: string): string {
  return PICTURES[endingOf(path)] ?? 'application/octet-stream';
}

/** Rows of a table with commas (or tabs): quotes may hold commas, line ends and doubled quotes. */
export function csvRows(
  text: string,
  separator = ',',
  most = 1000
): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  for (let at = 0; at < text.length && rows.length < most; at += 1) {
    const letter = text[at]!;
    if (quoted) {
      if (letter !== '"') {
        cell += letter;
      } else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else {
        quoted = false;
      }
    } else if (letter === '"' && cell === '') {
      quoted = true;
    } else if (letter === separator) {
      row.push(cell);
      cell = '';
    } else if (letter === '\n') {
      rows.push([...row, cell.replace(/\r$/, '')]);
      row = [];
      cell = '';
    } else {
      cell += letter;
    }
  }
  if ((cell !== '' || row.length > 0) && rows.length < most) {
    rows.push([...row, cell]);
  }
  return rows;
}

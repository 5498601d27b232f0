/** The program of an experiment as people read it: its cells or command, its files, what was sent along. */

import type { components } from '../../generated/rest';
import type { Api } from '../../shared/api';
import { formatBytes } from '../../shared/format';
import type { ExperimentDetail } from '../../shared/model';
import { blobContent, bundleManifest } from '../../shared/requests';

type Schemas = components['schemas'];
export type BundleManifest = Schemas['BundleManifest'];

/** Files up to this size are read as text. */
export const LARGEST_TEXT = 256 * 1024;

/** A cell as it ran. */
export interface ProgramCell {
  /** `Cell [3]`, `Cell number 2` where the notebook shows no number. */
  readonly title: string;
  readonly source: string;
  /** Why it is part of the program. */
  readonly reason: string;
  /** Whether the training call is in it. */
  readonly hasCall: boolean;
}

/** A file that the program came with. */
export interface ProgramFile {
  readonly path: string;
  readonly sha256: string;
  readonly size: number;
  /** Whether the master gives its content: what lies in the store of data is only named. */
  readonly readable: boolean;
}

/** Something that was sent along and is no text. */
export interface SentValue {
  readonly name: string;
  readonly what: string;
  readonly sha256: string;
}

export interface ProgramText {
  readonly kind: 'cells' | 'script' | 'command';
  readonly framework: string;
  readonly cells: readonly ProgramCell[];
  /** Of a script: its path and arguments. */
  readonly command: string;
  readonly files: readonly ProgramFile[];
  readonly sent: readonly SentValue[];
  readonly python: string;
  readonly packages: Readonly<Record<string, string>>;
}

type Owner = Pick<ExperimentDetail, 'bundle_id'>;

/** Whether the program of an experiment was kept, and can be asked for. */
export function hasProgram({ bundle_id: bundle }: Owner): boolean {
  return Boolean(bundle);
}

/** Load the program of an experiment; null where there is none. */
export async function loadProgram(
  api: Api,
  experiment: Owner,
  signal?: AbortSignal
): Promise<ProgramText | null> {
  const { bundle_id: bundle } = experiment;
  return hasProgram(experiment) && bundle
    ? programText(await bundleManifest(api, bundle, signal))
    : null;
}

/** What a manifest says, for people. */
export function programText(bundle: BundleManifest): ProgramText {
  const { program, interpreter } = bundle;
  const callCell = program.call?.cell ?? program.call?.running ?? null;
  return {
    kind: program.kind,
    framework: program.framework,
    cells: program.cells.map(({ number, source, reason }, at) => ({
      title: number === null ? `Cell number ${at + 1}` : `Cell [${number}]`,
      source,
      reason,
      hasCall: at === (callCell ?? program.cells.length - 1)
    })),
    command: program.command.join(' '),
    files: [
      ...bundle.files.map(file => ({ ...file, readable: true })),
      ...bundle.links.map(file => ({ ...file, readable: false }))
    ]
      .map(({ path, sha256, size, readable }) => ({
        path,
        sha256,
        size,
        readable
      }))
      .sort((one, other) => (one.path < other.path ? -1 : 1)),
    sent: bundle.values.map(({ name, codec, size, sha256 }) => ({
      name,
      what: `${codec}, ${formatBytes(size)}`,
      sha256
    })),
    python: interpreter.python,
    packages: interpreter.packages ?? {}
  };
}

/** All cells as a single text, as `det compare` has them. */
export function cellsText({ cells }: ProgramText): string {
  return cells.map(({ source }) => `# %%\n${source.trimEnd()}\n`).join('\n');
}

/** Text of a file; a sentence instead where it is too large, no text, or not with the master. */
export async function fileText(
  api: Api,
  { sha256, size, readable }: ProgramFile,
  signal?: AbortSignal
): Promise<{ text: string } | { problem: string }> {
  if (!readable) {
    return { problem: 'It lies in the store of data, which shows no text.' };
  }
  if (size > LARGEST_TEXT) {
    return {
      problem: `It is larger than ${formatBytes(LARGEST_TEXT)} (${formatBytes(size)}).`
    };
  }
  const content = await blobContent(api, sha256, signal);
  const bytes = new Uint8Array(await content.arrayBuffer());
  if (bytes.includes(0)) {
    return { problem: `It is no text (${formatBytes(size)}).` };
  }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { problem: `It is no text (${formatBytes(size)}).` };
  }
}

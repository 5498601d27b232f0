/** The cell that "Load into notebook" inserts. */

import type { Checkpoint, ExperimentId } from '../../shared/model';

const DEFAULT_NAME = 'det';

/** A checkpoint and its experiment. */
export interface CheckpointReference {
  experimentId: ExperimentId;
  checkpoint: {
    uuid: string;
    manifest: Pick<Checkpoint['manifest'], 'framework' | 'metadata'>;
  };
}

/**
 * The name under which one of these texts imports det_native at its top level; null if none does.
 *
 * The last import wins, as it does in the kernel.
 */
export function importedName(sources: readonly string[]): string | null {
  let name: string | null = null;
  for (const line of sources.flatMap(source => source.split('\n'))) {
    const statement = /^import\s+([^#;]+)/.exec(line)?.[1];
    for (const part of statement?.split(',') ?? []) {
      const found = /^det_native(?:\s+as\s+([A-Za-z_]\w*))?$/.exec(part.trim());
      if (found) {
        name = found[1] ?? 'det_native';
      }
    }
  }
  return name;
}

/**
 * Code that loads a checkpoint.
 *
 * @param reference - The checkpoint.
 * @param executed - Texts that the notebook's kernel has executed: an import among them is not repeated.
 */
export function checkpointCode(
  reference: CheckpointReference,
  executed: readonly string[] = []
): string {
  const { uuid, manifest } = reference.checkpoint;
  const known = importedName(executed);
  const name = known ?? DEFAULT_NAME;
  const lines = known === null ? [`import det_native as ${name}`, ''] : [];
  return [
    ...lines,
    `checkpoint = ${name}.attach(${JSON.stringify(reference.experimentId)}).checkpoint(${JSON.stringify(uuid)})`,
    `${loaded(manifest)} = checkpoint.load()`
  ].join('\n');
}

/** The name for what a checkpoint loads: a trial class keeps its models under names of its own. */
function loaded({
  framework,
  metadata
}: CheckpointReference['checkpoint']['manifest']): string {
  const loads = metadata?.['loads'];
  if (loads === 'trial' || loads === 'model' || loads === 'models') {
    return loads;
  }
  return framework === 'torch' ? 'trial' : 'model';
}

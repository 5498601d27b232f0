/** What the deletion of an experiment frees, in words. Pure. */

import type { components } from '../../generated/rest';
import { formatBytes } from '../../shared/format';

export type Deletion = components['schemas']['Deletion'];

function counted(count: number, word: string): string {
  return count === 0
    ? ''
    : `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
}

/** `3 checkpoints (1.2 MB)`, `240 log lines`: what goes, without what there is nothing of. */
export function freedTexts(deletion: Deletion): string[] {
  const sized = (text: string, bytes: number) =>
    text && bytes > 0 ? `${text} (${formatBytes(bytes)})` : text;
  return [
    counted(deletion.trials, 'trial'),
    sized(
      counted(deletion.checkpoints, 'checkpoint'),
      deletion.checkpoint_bytes
    ),
    sized(
      counted(deletion.artifacts, 'file') &&
        `${counted(deletion.artifacts, 'file')} that the training wrote`,
      deletion.output_bytes
    ),
    deletion.media === 0
      ? ''
      : `${deletion.media.toLocaleString('en')} logged pictures, tables and texts`,
    counted(deletion.log_lines, 'log line'),
    sized(counted(deletion.blobs, 'stored file'), deletion.blob_bytes)
  ].filter(Boolean);
}

export function freedBytes(deletion: Deletion): number {
  return (
    deletion.checkpoint_bytes +
    deletion.output_bytes +
    deletion.blob_bytes +
    deletion.event_file_bytes
  );
}

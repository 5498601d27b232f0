/** What slots are, in words: the model and memory of a GPU. Pure. */
import type { SlotInfo } from './model';

/** `NVIDIA H100 (80.0 GB)`; `GPU` or `CPU` where no more is known. */
export function slotName({
  device,
  name,
  memory
}: Pick<SlotInfo, 'device' | 'name' | 'memory'>): string {
  if (!name) {
    return device === 'cuda' ? 'GPU' : 'CPU';
  }
  return typeof memory === 'number'
    ? `${name} (${(memory / 1e9).toFixed(1)} GB)`
    : name;
}

/** `NVIDIA H100 (80.0 GB)` for slots of one kind, else how many there are of each: `2 GPU, 1 NVIDIA H100 (80.0 GB)`. */
export function kindsText(names: readonly string[]): string {
  const kinds = [...new Set(names)];
  if (kinds.length < 2) {
    return kinds[0] ?? '';
  }
  const count = (kind: string) => names.filter(name => name === kind).length;
  return kinds.map(kind => `${count(kind)} ${kind}`).join(', ');
}

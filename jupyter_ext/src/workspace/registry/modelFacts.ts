/** Models and their versions as the pages show them. Pure. */

import type { components } from '../../generated/rest';

export type Model = components['schemas']['Model'];
export type ModelVersion = components['schemas']['ModelVersion'];

export const SORTS = [
  { value: 'name', label: 'Name' },
  { value: '-updated', label: 'Changed last' },
  { value: '-created', label: 'Newest' },
  { value: '-versions', label: 'Most versions' }
] as const;

/** Those that fit a search and a label, sorted; archived ones only if they are asked for. */
export function chosen(
  models: readonly Model[],
  wish: { text: string; label: string; archived: boolean; sort: string }
): Model[] {
  const words = wish.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = models.filter(
    ({ name, description, labels, archived }) =>
      (wish.archived || !archived) &&
      (wish.label === '' || labels.includes(wish.label)) &&
      words.every(word =>
        [name, description, ...labels].some(text =>
          text.toLowerCase().includes(word)
        )
      )
  );
  const byName = (one: Model, other: Model) =>
    one.name.localeCompare(other.name, undefined, { numeric: true });
  return found.toSorted((one, other) => {
    switch (wish.sort) {
      case '-updated':
        return other.updated.localeCompare(one.updated);
      case '-created':
        return other.created.localeCompare(one.created);
      case '-versions':
        return other.versions - one.versions || byName(one, other);
      default:
        return byName(one, other);
    }
  });
}

/** All labels of models, sorted. */
export function labelsOf(models: readonly Model[]): string[] {
  return [...new Set(models.flatMap(({ labels }) => labels))].toSorted();
}

/** Names of the metrics that versions have, those of most versions first. */
export function metricNames(versions: readonly ModelVersion[]): string[] {
  const counts = new Map<string, number>();
  for (const { checkpoint } of versions) {
    for (const name of Object.keys(checkpoint.metrics)) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return [...counts]
    .toSorted(
      ([name, count], [other, others]) =>
        others - count || name.localeCompare(other)
    )
    .map(([name]) => name);
}

/** A label list as people type it: `one, two`. */
export function readLabels(text: string): string[] {
  return [...new Set(text.split(',').map(part => part.trim()))].filter(Boolean);
}

/** Metadata as lines `name: value`; values are JSON, or else text. */
export function metadataText(
  metadata: Readonly<Record<string, unknown>>
): string {
  return Object.entries(metadata)
    .map(([name, value]) => {
      const plain =
        typeof value === 'string' && readValue(value) === value
          ? value
          : JSON.stringify(value);
      return `${name}: ${plain}`;
    })
    .join('\n');
}

/** Read such lines; a text that says what is wrong where they cannot be read. */
export function readMetadata(text: string): Record<string, unknown> | string {
  const found: Record<string, unknown> = {};
  for (const line of text.split('\n').filter(each => each.trim() !== '')) {
    const at = line.indexOf(':');
    if (at < 1) {
      return `Write each line as “name: value”, not “${line.trim()}”.`;
    }
    found[line.slice(0, at).trim()] = readValue(line.slice(at + 1).trim());
  }
  return found;
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** What of a change of metadata is to be sent. */
export function metadataChange(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>
): { add_metadata: Record<string, unknown>; remove_metadata: string[] } {
  return {
    add_metadata: Object.fromEntries(
      Object.entries(after).filter(
        ([name, value]) =>
          JSON.stringify(before[name]) !== JSON.stringify(value)
      )
    ),
    remove_metadata: Object.keys(before).filter(name => !(name in after))
  };
}

/** Plain data as YAML, for people to read. Pure. */

import { isObject } from './configSchema';

/** Texts that YAML reads as something else, or that would end where they should not. */
const PLAIN = /^[A-Za-z_/][\w ./@+-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|nan|inf)$/i;

function scalar(value: unknown): string {
  if (typeof value !== 'string') {
    return value === undefined ? 'null' : JSON.stringify(value);
  }
  const plain =
    PLAIN.test(value) && !WORDS.test(value) && value.trim() === value;
  return plain ? value : JSON.stringify(value);
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value)
    ? value.length === 0
    : isObject(value) && Object.keys(value).length === 0;
}

function isScalar(value: unknown): boolean {
  return !Array.isArray(value) && !isObject(value);
}

function lines(value: unknown, indent: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      if (isScalar(item) || isEmpty(item)) {
        return [`${indent}- ${inline(item)}`];
      }
      const [first = '', ...rest] = lines(item, `${indent}  `);
      return [`${indent}- ${first.trimStart()}`, ...rest];
    });
  }
  return Object.entries(isObject(value) ? value : {}).flatMap(([name, item]) =>
    isScalar(item) || isEmpty(item)
      ? [`${indent}${scalar(name)}: ${inline(item)}`]
      : [`${indent}${scalar(name)}:`, ...lines(item, `${indent}  `)]
  );
}

function inline(value: unknown): string {
  if (isEmpty(value)) {
    return Array.isArray(value) ? '[]' : '{}';
  }
  return scalar(value);
}

/** YAML of a mapping, its names in their order. */
export function yamlText(value: unknown): string {
  return isScalar(value) || isEmpty(value)
    ? inline(value)
    : lines(value, '').join('\n');
}

export interface Difference {
  /** `searcher.max_length.batches`. */
  readonly path: string;
  /** Undefined where there is none. */
  readonly before: unknown;
  readonly after: unknown;
}

/** Where two pieces of data differ, leaf by leaf; lists are compared whole. */
export function differences(
  before: unknown,
  after: unknown,
  path = ''
): Difference[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap(name =>
      differences(
        before[name],
        after[name],
        path === '' ? name : `${path}.${name}`
      )
    );
  }
  // What is null and what is not there mean the same in a configuration.
  const same = JSON.stringify(before ?? null) === JSON.stringify(after ?? null);
  return same ? [] : [{ path, before, after }];
}

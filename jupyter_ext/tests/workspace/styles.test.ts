import { readdirSync, readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

const FOLDER = new URL('../../src/workspace/', import.meta.url);

/** Classes that the styles of a folder name. */
function classesOf(folder: string): Set<string> {
  const files = readdirSync(new URL(`${folder}/`, FOLDER));
  const texts = files
    .filter(name => name.endsWith('.css'))
    .map(name => readFileSync(new URL(`${folder}/${name}`, FOLDER), 'utf8'));
  return new Set(texts.join().match(/(?<=\.)det-[\w-]+/g));
}

it('no two pages have styles of the same class, unless all share it', () => {
  const shared = classesOf('styles');
  const owners = new Map<string, string[]>();
  for (const { name } of readdirSync(FOLDER, {
    withFileTypes: true
  })) {
    for (const found of name === 'styles' ? [] : classesOf(name)) {
      owners.set(found, [...(owners.get(found) ?? []), name]);
    }
  }
  const twice = [...owners].filter(
    ([found, folders]) =>
      folders.length > 1 && !shared.has(found) && found !== 'det-view'
  );
  expect(owners.size).toBeGreaterThan(100);
  expect(twice).toEqual([]);
});

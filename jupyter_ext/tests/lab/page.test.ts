import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { CommandIds } from '../../src/lab/commandIds';
import { Presence } from '../../src/lab/presence';
import { VERSION } from '../../src/lab/version';

function readJSON<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as T;
}

class Page extends EventTarget {
  hidden = false;

  hide(hidden: boolean): void {
    this.hidden = hidden;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

function presence() {
  const page = new Page();
  const told: boolean[] = [];
  const found = new Presence(seen => told.push(seen), page);
  return { page, told, presence: found };
}

describe('presence', () => {
  it('begins unseen, and tells only what changes', () => {
    const { told, presence: found } = presence();
    found.setShown(false);
    found.setShown(true);
    found.setShown(true);
    expect(told).toEqual([true]);
  });

  it("ends when the browser's tab is hidden, and comes back with it", () => {
    const { page, told, presence: found } = presence();
    found.setShown(true);
    page.hide(true);
    expect(found.seen).toBe(false);
    page.hide(false);
    expect(told).toEqual([true, false, true]);
  });

  it('does not come back while the panel is hidden', () => {
    const { page, told, presence: found } = presence();
    found.setShown(true);
    found.setShown(false);
    page.hide(true);
    page.hide(false);
    expect(told).toEqual([true, false]);
  });

  it('says nothing after its end', () => {
    const { page, told, presence: found } = presence();
    found.setShown(true);
    found.dispose();
    page.hide(true);
    expect(told).toEqual([true]);
  });
});

describe('the package', () => {
  it('has the version that the front end tells', () => {
    expect(readJSON<{ version: string }>('../../package.json').version).toBe(
      VERSION
    );
  });

  it('names in its settings only commands that exist', () => {
    const settings = readJSON<{
      'jupyter.lab.menus': { context: { command: string }[] };
    }>('../../schema/plugin.json');
    const known: string[] = Object.values(CommandIds);
    for (const { command } of settings['jupyter.lab.menus'].context) {
      expect(known).toContain(command);
    }
  });
});

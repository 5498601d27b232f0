// @vitest-environment jsdom
import { buttonOf, pathPoints, textsOf } from './browserParts';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import type widget from '../../src/widget/index';
import { FakeModel } from '../widget/fakeModel';
import { curve, detail, trial } from './examples';

/**
 * Bytes of the script and its styles together: a view of a run of the kernel's own, too, shows and stops by itself, and
 * tables that sort, names and bars of one look took 2,000 more, the figures of a search 8,000, those of the machine's use
 * 5,000, the gallery and files 13,000, a failure that is folded 300, the validations of a loop of one's own 500, the client of the master's interface 5,500.
 */
const LIMIT = 144_500;

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'det-widget-'));
  await promisify(execFile)('node', ['build-widget.mjs', folder]);
}, 60_000);
afterAll(() => rm(folder, { recursive: true }));

it('the widget is small as it is built', async () => {
  const files = ['live.js', 'live.css'].map(name => stat(join(folder, name)));
  const sizes = (await Promise.all(files)).map(({ size }) => size);
  expect(Math.min(...sizes)).toBeGreaterThan(5000);
  expect(sizes[0]! + sizes[1]!).toBeLessThan(LIMIT);
});

it('the widget draws charts without what is left out of uPlot', async () => {
  const script = await readFile(join(folder, 'live.js'));
  const url = `data:text/javascript;base64,${script.toString('base64')}`;
  const built = (await import(/* @vite-ignore */ url)) as {
    default: typeof widget;
  };
  const model = new FakeModel();
  const end = built.default.render({ model: model.any, el: document.body });
  await vi.waitFor(() => expect(model.sent).toContainEqual({ type: 'replay' }));
  pathPoints.length = 0;
  const parts = { experiment: detail(), trials: [trial()], curves: [curve()] };
  model.change(parts);
  await vi.waitFor(() => expect(pathPoints.length).toBeGreaterThan(2));
  expect(textsOf(document.body, '.det-legend-entry')).toEqual(['training 1']);
  pathPoints.length = 0;
  buttonOf(document.body, 'Logarithmic scale for loss').click();
  await vi.waitFor(() => expect(pathPoints.length).toBeGreaterThan(2));
  end();
});

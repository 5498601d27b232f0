// @vitest-environment jsdom
/** What a notebook keeps of a view whose display JupyterLab has forgotten. */
import { Widget } from '@lumino/widgets';
import { expect, it, vi } from 'vitest';

import { keep } from '../../src/lab/output/keep';
import { VIEW_MIME_TYPE } from '../../src/lab/output/mimeType';

// What Lumino's modules want of a browser when they are loaded, and jsdom has not.
vi.hoisted(() => vi.stubGlobal('DragEvent', class extends Event {}));

function output(id: string) {
  const data = {
    [VIEW_MIME_TYPE]: { view_id: id },
    'text/plain': 'running'
  };
  const rest = { output_type: 'display_data', metadata: { a: 1 } };
  return { data, toJSON: () => ({ ...rest, data }) };
}

/** Something shown in one of the outputs of a cell. */
function shownIn(outputs: object): Widget {
  const shown = new Widget();
  const item = new Widget();
  const area = Object.assign(new Widget(), { model: outputs });
  shown.parent = item;
  item.parent = area;
  return shown;
}

it('renews the output of that view alone, and leaves all else of it', () => {
  const all = [output('other'), output('mine'), output('third')];
  const set = vi.fn();
  const outputs = {
    length: all.length,
    get: (index: number) => all[index],
    set
  };
  const state = { 'text/plain': 'completed', 'image/png': 'abc' };
  keep(shownIn(outputs), 'mine', state);
  expect(set.mock.calls).toEqual([
    [1, { output_type: 'display_data', metadata: { a: 1 }, data: state }]
  ]);
});

it('leaves what is shown outside of a cell as it is', () => {
  expect(() =>
    keep(new Widget(), 'mine', { 'text/plain': 'completed' })
  ).not.toThrow();
});

// @vitest-environment jsdom
import { textsOf } from './browserParts';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { readPalette } from '../../src/shared/palette';
import { checkpoint, curve, flatCurve, trial } from './examples';
import { frame, shown } from './shownView';

afterEach(() => vi.restoreAllMocks());

const IDS = Array.from({ length: 12 }, (_, index) => index + 1);
const TRIALS = IDS.map(id =>
  trial({ id, best_validation: id === 5 ? 0.99 : 0.1 })
);
/** Of trial 7, a loss of 0.7, and so on. */
const CURVES = IDS.flatMap(id => [
  flatCurve([10, 20], [9, id / 10], { trial_id: id }),
  flatCurve([10, 20], [0, id / 100], { trial_id: id, name: 'error' })
]);

/** The view of a search of twelve trials, drawn. */
async function search() {
  const view = shown({ trials: TRIALS, curves: CURVES });
  await frame();
  const { root, show } = view;
  const rowOf = (id: number) =>
    root.querySelector<HTMLElement>(
      `[aria-label=Trials] tr[data-key="${id}"]`
    )!;
  const tell = (type: string, target: Element, init: object = {}) => {
    const event = new MouseEvent(type, { bubbles: true, ...init });
    target.dispatchEvent(event);
    return frame();
  };
  return {
    root,
    show,
    rowOf,
    tell,
    point: (id: number) => tell('pointerover', rowOf(id).lastElementChild!),
    leave: () => tell('pointerleave', rowOf(1).parentElement!),
    press: async (key: string, modifiers: KeyboardEventInit = {}) => {
      const init = { key, bubbles: true, cancelable: true, ...modifiers };
      const event = new KeyboardEvent('keydown', init);
      document.activeElement!.dispatchEvent(event);
      await frame();
      return event.defaultPrevented;
    },
    legends: () =>
      [...root.querySelectorAll('.det-legend')].map(legend =>
        textsOf(legend, '.det-legend-entry')
      ),
    selected: () =>
      [...root.querySelectorAll('[aria-selected=true]')].map(
        row => row.firstElementChild?.textContent
      )
  };
}

const plain = [
  ['trial 5 (best) 0.5', '11 more curves'],
  ['trial 5 (best) 0.05', '11 more curves']
];
const seven = [
  ['trial 7 0.7', 'trial 5 (best) 0.5', '10 more curves'],
  ['trial 7 0.07', 'trial 5 (best) 0.05', '10 more curves']
];
/** While it is only pointed at: in its place. */
const atSeven = [
  ['trial 5 (best) 0.5', 'trial 7 0.7', '10 more curves'],
  ['trial 5 (best) 0.05', 'trial 7 0.07', '10 more curves']
];

describe("a trial's row", () => {
  it('shows the curves of its trial in all charts while it is pointed at', async () => {
    const { legends, point, leave, root } = await search();
    expect(legends()).toEqual(plain);
    await point(7);
    expect(legends()).toEqual(atSeven);
    const picture = root.querySelector('[role=img]')!;
    expect(picture.getAttribute('aria-label')).toMatch(
      /last values: trial 5 \(best\) 0.5; trial 1 0.1; /
    );
    await point(8);
    expect(legends()[0]?.[1]).toBe('trial 8 0.8');
    await leave();
    expect(legends()).toEqual(plain);
  });

  it('lays them over the others, in a colour that is not the best one', async () => {
    const { point, root } = await search();
    const strokes: unknown[] = [];
    const context = document.createElement('canvas').getContext('2d')!;
    Object.defineProperty(context, 'strokeStyle', {
      configurable: true,
      set: (colour: unknown) => strokes.push(colour)
    });
    const figure = root.querySelector<HTMLElement>('figure')!;
    IDS.slice(0, 8).forEach(id =>
      figure.style.setProperty(`--det-trial-${id}`, `#00000${id}`)
    );
    await point(1);
    delete (context as { strokeStyle?: unknown }).strokeStyle;
    const { trials, other } = readPalette(figure);
    const first = strokes.indexOf(trials[0]);
    expect(first).toBeGreaterThan(strokes.indexOf(other));
    expect(strokes.lastIndexOf(trials[1])).toBeGreaterThan(
      strokes.lastIndexOf(trials[0])
    );
    expect(trials.slice(2).some(each => strokes.includes(each))).toBe(false);
  });

  it('is held by a click until it is clicked again, or another one is', async () => {
    const { legends, point, leave, rowOf, tell, selected } = await search();
    await point(7);
    await tell('click', rowOf(7).firstElementChild!);
    await leave();
    expect([legends(), selected()]).toEqual([seven, ['7']]);
    await point(8);
    expect(legends()[0]?.[0]).toBe('trial 7 0.7');
    await leave();
    expect(legends()).toEqual(seven);
    await tell('click', rowOf(8));
    expect([legends()[0]?.[0], selected()]).toEqual(['trial 8 0.8', ['8']]);
    await tell('click', rowOf(8));
    expect([legends(), selected()]).toEqual([plain, []]);
  });

  it('is not held by selecting its text', async () => {
    const { rowOf, tell, selected } = await search();
    getSelection()!.selectAllChildren(rowOf(7));
    await tell('click', rowOf(7));
    expect(selected()).toEqual([]);
    getSelection()!.removeAllRanges();
  });

  it('is reached, left and held by the keyboard, which nothing else hears then', async () => {
    const { legends, press, rowOf, root, selected } = await search();
    const heard = vi.fn();
    document.body.addEventListener('keydown', heard);
    const stops = () =>
      [...root.querySelectorAll('tr[tabindex="0"]')].map(
        row => row.firstElementChild?.textContent
      );
    expect(stops()).toEqual(['5']);
    rowOf(1).focus();
    await frame();
    expect(legends()[0]?.[1]).toBe('trial 1 0.1');
    for (const key of ['ArrowDown', 'End', 'ArrowDown', 'ArrowUp', 'Home']) {
      expect(await press(key)).toBe(true);
    }
    expect(document.activeElement).toBe(rowOf(5)); // the best one is first
    for (let down = 0; down < 6; down++) {
      await press('ArrowDown');
    }
    expect(stops()).toEqual(['7']);
    expect(legends()).toEqual(atSeven);
    await press('Enter');
    rowOf(7).blur();
    await frame();
    expect([legends(), selected()]).toEqual([seven, ['7']]);
    rowOf(7).focus();
    expect(await press(' ')).toBe(true);
    rowOf(7).blur();
    await frame();
    expect([legends(), selected()]).toEqual([plain, []]);
    expect(heard).not.toHaveBeenCalled();
    rowOf(7).focus();
    expect(await press('a')).toBe(false);
    expect(await press('Enter', { shiftKey: true })).toBe(false);
    expect(await press('Home', { ctrlKey: true })).toBe(false);
    expect(heard).toHaveBeenCalledTimes(3);
    expect(selected()).toEqual([]);
    document.body.removeEventListener('keydown', heard);
  });

  it('stays highlighted while table and curves change, and gives way when it is gone', async () => {
    const { legends, rowOf, tell, show, root, selected } = await search();
    await tell('click', rowOf(7));
    const before = rowOf(7);
    const grown = CURVES.map(each =>
      each.trial_id === 7 ? { ...each, mean: [9, 0.001] } : each
    );
    const trials = [
      ...TRIALS.map(each => ({ ...each, batches: 60 })),
      trial({ id: 13, best_validation: null })
    ];
    await show({ trials, curves: grown });
    await frame();
    expect(rowOf(7)).toBe(before);
    expect(before.textContent).toContain('60 / 100');
    expect([legends()[0]?.[0], selected()]).toEqual(['trial 7 0.001', ['7']]);
    await show({ trials: trials.filter(({ id }) => id > 7), curves: grown });
    await frame();
    expect(legends()[0]?.[0]).not.toContain('trial 7');
    expect(root.querySelectorAll('tr[tabindex="0"]')).toHaveLength(1);
  });

  it('moves nothing below the charts', async () => {
    const { point, leave, root } = await search();
    const legend = root.querySelector<HTMLElement>('.det-legend')!;
    vi.spyOn(legend, 'getBoundingClientRect').mockReturnValue(
      new DOMRect(0, 0, 300, 31.9)
    );
    await point(7);
    expect(legend.style.minHeight).toBe('31.9px');
    await point(8);
    expect(legend.style.minHeight).toBe('31.9px');
    await leave();
    expect(legend.style.minHeight).toBe('');
    expect(legend.classList).toContain('det-crowded');
  });

  it('leaves room for the legend of a chart that comes meanwhile', async () => {
    const { point, show, root } = await search();
    await point(7);
    await show({
      curves: [...CURVES, ...CURVES.map(each => ({ ...each, name: 'new' }))]
    });
    await frame();
    const legends = [...root.querySelectorAll<HTMLElement>('.det-legend')];
    expect(legends.at(-1)?.textContent).toContain('trial 7');
    expect(legends.map(({ style }) => style.cssText)).toEqual(
      legends.map(() => '')
    );
  });

  it('of few trials fades the curves of the others', async () => {
    const { root, show, rowOf, tell, legends } = await search();
    const curves = CURVES.filter(each => each.trial_id < 4);
    await show({ trials: TRIALS.slice(0, 3), curves });
    await frame();
    const alphas: unknown[] = [];
    const context = document.createElement('canvas').getContext('2d')!;
    Object.defineProperty(context, 'globalAlpha', {
      configurable: true,
      set: (alpha: unknown) => alphas.push(alpha)
    });
    await tell('pointerover', rowOf(2));
    delete (context as { globalAlpha?: unknown }).globalAlpha;
    expect(alphas.filter(alpha => alpha === 0.35)).toHaveLength(
      2 * 2 * 2 // two lines in two charts, and their points
    );
    expect(legends()[0]?.map(text => text.slice(0, 7))).toEqual([
      'trial 1',
      'trial 2',
      'trial 3'
    ]);
    expect(
      root.querySelector('.det-legend')!.classList.contains('det-crowded')
    ).toBe(false);
  });

  it('changes neither the axis nor the order of a chart while it is only pointed at', async () => {
    const { point, show, tell, rowOf } = await search();
    const peaks = CURVES.filter(each => each.trial_id < 4).map(each => ({
      ...each,
      maximum: [each.trial_id * 100, 1]
    }));
    const ticks: string[] = [];
    const context = document.createElement('canvas').getContext('2d')!;
    Object.defineProperty(context, 'fillText', {
      configurable: true,
      value: (text: string) => void ticks.push(text)
    });
    await show({ trials: TRIALS.slice(0, 3), curves: peaks });
    await frame();
    const shown = () => [...new Set(ticks.splice(0))].toSorted();
    const before = shown();
    expect(before.some(text => Number(text) >= 300)).toBe(true);
    await point(2);
    expect(shown()).toEqual(before);
    await tell('click', rowOf(1));
    expect(shown()).toEqual(before);
    delete (context as { fillText?: unknown }).fillText;
  });

  it('leaves a chart at what it is zoomed to', async () => {
    const batches = Array.from({ length: 101 }, (_, batch) => batch);
    const curves = IDS.map(id => flatCurve(batches, batches, { trial_id: id }));
    const { root, show, point, tell } = await search();
    await show({ curves });
    await frame();
    const over = () => root.querySelector('.u-over')!;
    const labels = () => drawn.splice(0).filter(text => /^\d+$/.test(text));
    const drawn: string[] = [];
    const context = document.createElement('canvas').getContext('2d')!;
    (context as unknown as Record<string, unknown>).fillText = (text: string) =>
      drawn.push(text);
    await tell('mousedown', over(), { clientX: 20, clientY: 40 });
    await tell('mousemove', over(), { clientX: 50, clientY: 40 });
    await tell('mouseup', document.body, { clientX: 50, clientY: 40 });
    const zoomed = labels();
    expect(zoomed.length).toBeGreaterThan(0);
    await point(7);
    expect(labels()).toEqual(zoomed);
    delete (context as { fillText?: unknown }).fillText;
  });
});

it('rows of checkpoints stand for no curve', () => {
  const { root } = shown({ checkpoints: [checkpoint()], curves: [curve()] });
  expect(
    root.querySelector('[aria-label=Checkpoints] tr[aria-selected]')
  ).toBeNull();
  expect(
    root.querySelector('table[aria-label=Checkpoints]')!.hasAttribute('role')
  ).toBe(false);
});

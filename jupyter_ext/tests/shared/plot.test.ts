// @vitest-environment jsdom
import {
  buttonOf,
  observing,
  pathPoints,
  resized,
  textsOf
} from './browserParts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type uPlot from 'uplot';

import { Legend } from '../../src/shared/legend';
import type { LineStyle } from '../../src/shared/palette';
import { readPalette, watchTheme } from '../../src/shared/palette';
import { Chart, type ChartContext } from '../../src/shared/plot';
import { curve, flatCurve, NASTY } from './examples';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
  document.body.className = '';
});

const frame = () => vi.advanceTimersByTimeAsync(20);

/** A chart in a page, drawn. */
async function chart(curves = [curve()], context?: ChartContext) {
  const found = new Chart(document.body, { title: 'loss' });
  found.setCurves(curves, context);
  await frame();
  const { root } = found;
  return {
    chart: found,
    root,
    plot: () => root.querySelector('.uplot'),
    log: () => buttonOf(root, 'Logarithmic scale for loss'),
    picture: () => root.querySelector('[role=img]')?.getAttribute('aria-label'),
    legend: () => textsOf(root, '.det-legend-entry')
  };
}

describe('a chart', () => {
  it('draws at the next frame, once however often it is told', async () => {
    const found = new Chart(document.body, { title: 'loss' });
    const draw = vi.spyOn(found, 'draw');
    for (let time = 0; time < 10; time++) {
      found.setCurves([curve()]);
    }
    expect(draw).not.toHaveBeenCalled();
    await frame();
    expect(draw).toHaveBeenCalledTimes(1);
    expect(document.querySelectorAll('canvas')).toHaveLength(1);
    found.dispose();
  });

  it('of one point has axes that fit, and of more those of its values', async () => {
    const { chart: found } = await chart([flatCurve([60], [0.97])]);
    const scales = () =>
      (found as unknown as { _plot: uPlot })._plot.scales as Record<
        'x' | 'y',
        { min: number; max: number }
      >;
    expect([scales().x.min, scales().x.max]).toEqual([59, 61]);
    expect([scales().y.min, scales().y.max]).toEqual([0.873, 1.067]);
    found.setCurves([flatCurve([60, 80], [0.97, 0.5])]);
    await frame();
    expect([scales().x.min, scales().x.max]).toEqual([60, 80]);
    expect(scales().y.min).toBeLessThan(0.5);
    found.dispose();
  });

  it('says in words what it shows', async () => {
    const curves = [
      flatCurve([10, 20], [0.5, 0.25]),
      flatCurve([10, 20], [0.6, null], { kind: 'validation', name: 'val_loss' })
    ];
    const { chart: found, picture, legend } = await chart(curves);
    expect(picture()).toBe(
      'loss over batches; last values: training 0.25; validation 0.6'
    );
    expect(legend()).toEqual(['training 0.25', 'validation 0.6']);
    found.dispose();
  });

  it('says the newest value as bars and logs say it, whatever it draws', async () => {
    const reduced = flatCurve([10, 20], [0.5, 0.25]);
    const { chart: found, legend } = await chart([{ ...reduced, last: 0.4 }]);
    expect(legend()).toEqual(['training 0.4']);
    found.dispose();
  });

  it('keeps its plot while only the data change', async () => {
    const { chart: found, plot, picture } = await chart();
    const before = plot();
    found.setCurves([flatCurve([10, 20, 30, 40], [3, 2, 1, 0.5])]);
    await frame();
    expect(plot()).toBe(before);
    expect(picture()).toContain('training 0.5');
    found.setCurves([curve({ trial_id: 4 })]);
    await frame();
    expect(plot()).not.toBe(before);
    expect(document.querySelectorAll('.uplot')).toHaveLength(1);
    found.dispose();
  });

  it('has a logarithmic scale on demand, where there is something above zero', async () => {
    const { chart: found, log, plot } = await chart();
    const before = plot();
    expect([log().getAttribute('aria-pressed'), log().disabled]).toEqual([
      'false',
      false
    ]);
    log().click();
    expect(log().getAttribute('aria-pressed')).toBe('true');
    expect(plot()).not.toBe(before);
    found.setCurves([flatCurve([10], [-1])]);
    await frame();
    expect(log().disabled).toBe(false); // there must be a way back
    log().click();
    expect([log().getAttribute('aria-pressed'), log().disabled]).toEqual([
      'false',
      true
    ]);
    found.dispose();
  });

  it('shows values of several trials, the best one marked, and counts those in the background', async () => {
    const trials = Array.from({ length: 12 }, (_, index) => index + 1);
    const curves = trials.map(id => curve({ trial_id: id }));
    const { chart: found, legend } = await chart(curves, { trials, best: 5 });
    expect(legend()).toEqual(['trial 5 (best) 1', '11 more curves']);
    found.setCurves(curves.slice(0, 3), { trials: [1, 2, 3], best: 2 });
    await frame();
    expect(legend()).toEqual(['trial 2 (best) 1', 'trial 1 1', 'trial 3 1']);
    found.dispose();
  });

  it('names the curves of the best trial first, where not all are named', async () => {
    const trials = Array.from({ length: 8 }, (_, index) => index + 1);
    const curves = (['training', 'validation'] as const).flatMap(kind =>
      trials.map(trial_id => curve({ trial_id, kind, name: kind }))
    );
    const context = { trials, best: 7 };
    const { chart: found, legend } = await chart(curves, context);
    expect(legend().slice(0, 3)).toEqual([
      'trial 7 (best), training 1',
      'trial 7 (best), validation 1',
      'trial 1, training 1'
    ]);
    expect(legend().slice(-1)).toEqual(['8 more curves']);
    found.setCurves(curves, { ...context, highlighted: 5 });
    await frame();
    expect(legend().map(text => text.slice(0, 7))).toEqual([
      ...['trial 5', 'trial 5', 'trial 7', 'trial 7'],
      ...['trial 1', 'trial 2', 'trial 3', 'trial 4', '8 more ']
    ]);
    found.dispose();
  });

  it('draws the best trial over the others, and tells its values first', async () => {
    const strokes: unknown[] = [];
    const context = document.createElement('canvas').getContext('2d')!;
    Object.defineProperty(context, 'strokeStyle', {
      configurable: true,
      set: (colour: unknown) => strokes.push(colour)
    });
    const trials = Array.from({ length: 12 }, (_, index) => index + 1);
    const curves = trials.map(id => curve({ trial_id: id }));
    const { chart: found, picture } = await chart(curves, { trials, best: 5 });
    const { trials: colours, other } = readPalette(found.root);
    const lines = strokes.filter(each => each === other || each === colours[0]);
    expect([lines.includes(other), lines.at(-1)]).toEqual([true, colours[0]]);
    expect(picture()).toMatch(
      /last values: trial 5 \(best\) 1; trial 1 1; trial 2 1; trial 3 1$/
    );
    delete (context as { strokeStyle?: unknown }).strokeStyle;
    found.dispose();
  });

  it('draws a point where a gap is on both sides', async () => {
    const arc = vi.spyOn(Path2D.prototype, 'arc');
    const drawn = async (...mean: Array<number | null>) => {
      arc.mockClear();
      const batches = mean.map((_, index) => index + 1);
      const { chart: found } = await chart([flatCurve(batches, mean)]);
      found.dispose();
      return arc.mock.calls.length;
    };
    expect(await drawn(1, 2, 3, null, 4, 5)).toBe(0);
    expect(await drawn(1, null, 3, null, 4, 5, null, 6)).toBe(3);
  });

  it('says so where there is no number', async () => {
    const none = ['NaN', 'Infinity'] as unknown as number[];
    const {
      chart: found,
      picture,
      root
    } = await chart([flatCurve([10, 20], none)]);
    const words = 'All values are NaN or infinite: there is nothing to draw.';
    expect(textsOf(root, '.det-empty')).toEqual([words]);
    expect(picture()).toBe(`loss over batches; ${words}`);
    found.setCurves([flatCurve([10, 20], [null, 1])]);
    await frame();
    expect(textsOf(root, '.det-empty')).toEqual([]);
    expect(picture()).toContain('training 1');
    found.setCurves([
      curve({
        mean: [Infinity, Infinity, Infinity],
        minimum: [1, 1, 1],
        maximum: [Infinity, Infinity, Infinity]
      })
    ]);
    await frame();
    expect(textsOf(root, '.det-empty')).toEqual([]);
    found.dispose();
  });

  it('has a name that is text, whatever it is', async () => {
    const found = new Chart(document.body, { title: NASTY });
    found.setCurves([curve({ name: NASTY })]);
    await frame();
    expect(document.querySelector('img, script')).toBeNull();
    expect(textsOf(document.body, '.det-chart-title > span')).toEqual([NASTY]);
    found.dispose();
  });

  it('is called by its metric alone, and tells a name that is cut', async () => {
    const { chart: found, root } = await chart();
    expect(root.getAttribute('aria-label')).toBe('loss');
    expect(
      root.querySelector('.det-chart-title > span')?.getAttribute('title')
    ).toBe('loss');
    found.dispose();
  });

  it('is drawn without any point, with one, and with gaps only', async () => {
    for (const mean of [[], [1], [null, null], [0, 0]]) {
      const { chart: found, root } = await chart([
        flatCurve([10, 20].slice(0, mean.length), mean)
      ]);
      expect(root.querySelectorAll('canvas')).toHaveLength(1);
      found.dispose();
    }
  });

  it('of 100 000 points draws few for each column of pixels', async () => {
    pathPoints.length = 0;
    const batch = Array.from({ length: 100_000 }, (_, index) => index);
    const { chart: found } = await chart([
      flatCurve(batch, batch.map(Math.sin))
    ]);
    expect(pathPoints.length).toBeGreaterThan(0);
    expect(pathPoints.length).toBeLessThan(5000);
    found.dispose();
  });

  it('takes the width that there is', async () => {
    const { chart: found, root } = await chart();
    const host = root.querySelector('[role=img]')!;
    const width = () => root.querySelector<HTMLElement>('.u-wrap')?.style.width;
    expect(width()).toBe('120px');
    Object.defineProperty(host, 'clientWidth', { value: 400 });
    resized(host);
    await vi.advanceTimersByTimeAsync(0);
    expect(width()).toBe('400px');
    found.dispose();
  });

  it("is drawn again with the page's theme, and its style sheet that comes later", async () => {
    const { chart: found } = await chart();
    const draw = vi.spyOn(found, 'draw');
    document.body.className = 'dark';
    await vi.advanceTimersByTimeAsync(0);
    expect(draw).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(400);
    expect(draw).toHaveBeenCalledTimes(2);
    found.dispose();
  });

  it('leaves nothing when it is disposed, drawn or not', async () => {
    const { chart: found } = await chart();
    document.body.className = 'dark';
    await vi.advanceTimersByTimeAsync(0);
    found.setCurves([curve()]);
    found.dispose();
    const undrawn = new Chart(document.body, { title: 'x' });
    undrawn.dispose();
    expect(document.querySelector('figure, canvas')).toBeNull();
    expect(observing.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    const draw = vi.spyOn(found, 'draw');
    document.body.className = 'light';
    await vi.advanceTimersByTimeAsync(1000);
    expect(draw).not.toHaveBeenCalled();
  });
});

describe('a grid', () => {
  it('is drawn for numbers of whatever size, as is a logarithmic one', async () => {
    const drawn: string[] = [];
    const context = document.createElement('canvas').getContext('2d')!;
    (context as unknown as Record<string, unknown>).fillText = (text: string) =>
      drawn.push(text);
    const numbers = () => drawn.splice(0).filter(text => text.includes('e'));
    const values = [1e299, 2e299, 3e299];
    const { chart: found, log } = await chart([flatCurve([1, 2, 3], values)]);
    expect(numbers()).toEqual(['1e+299', '2e+299', '3e+299']);
    log().click();
    await frame();
    expect(numbers()).toEqual(['1e+299', '2e+299', '5e+299', '1e+300']);
    delete (context as { fillText?: unknown }).fillText;
    found.dispose();
  });

  it('that is logarithmic has few lines over many decades', async () => {
    const lineTo = vi.fn();
    const context = document.createElement('canvas').getContext('2d')!;
    (context as unknown as Record<string, unknown>).lineTo = lineTo;
    const mean = Array.from({ length: 14 }, (_, index) => 10 ** -index);
    const batch = mean.map((_, index) => index);
    const { chart: found, log } = await chart([flatCurve(batch, mean)]);
    log().click();
    lineTo.mockClear();
    await frame();
    delete (context as { lineTo?: unknown }).lineTo;
    const heights = new Set(
      lineTo.mock.calls
        .filter(([x]) => x !== undefined)
        .map(([, y]) => y as number)
    );
    expect(heights.size).toBeGreaterThan(10);
    expect(heights.size).toBeLessThan(20);
    found.dispose();
  });
});

describe('the legend', () => {
  const style = (
    label: string,
    change: Partial<LineStyle> = {}
  ): LineStyle => ({
    colour: 'red',
    width: 1,
    dashed: false,
    points: false,
    label,
    background: false,
    faded: false,
    ...change
  });

  it('has an entry for each of the first eight lines, and counts the rest', () => {
    const legend = new Legend();
    legend.setLines(
      Array.from({ length: 9 }, (_, index) => style(`trial ${index}`))
    );
    expect(textsOf(legend.root, '.det-legend-entry')).toHaveLength(9);
    expect(textsOf(legend.root, '.det-legend-entry').at(-1)).toBe(
      '1 more curve'
    );
    legend.setLines([
      style('a', { dashed: true }),
      style('b', { background: true })
    ]);
    expect(textsOf(legend.root, '.det-legend-entry')).toEqual([
      'a ',
      '1 more curve'
    ]);
    expect(legend.root.querySelectorAll('.det-dashed')).toHaveLength(1);
  });

  it('shows the values under the cursor, and of which batch', () => {
    const legend = new Legend();
    legend.setLines([style('a'), style(NASTY)]);
    legend.setValues(12_000, [0.98713, null]);
    expect(legend.root.textContent).toBe(`a 0.9871${NASTY} —batch 12,000`);
    legend.setValues(null, [1]);
    expect(legend.root.textContent).toBe(`a 1${NASTY} —`);
    expect(legend.root.querySelector('img')).toBeNull();
  });
});

describe('the colours', () => {
  it("are the page's, and others where it has none", () => {
    document.body.style.setProperty('--det-other', ' #123456 ');
    const palette = readPalette(document.body);
    expect(palette.other).toBe('#123456');
    expect(palette.trials).toHaveLength(8);
    expect(Object.values(palette).flat()).not.toContain('');
    document.body.removeAttribute('style');
  });

  it('are told of no more once nobody watches the theme', async () => {
    const listener = vi.fn();
    const end = watchTheme(document, listener);
    document.documentElement.dataset.theme = 'dark';
    await vi.advanceTimersByTimeAsync(0);
    expect(listener).toHaveBeenCalledTimes(1);
    end();
    document.documentElement.dataset.theme = 'light';
    await vi.advanceTimersByTimeAsync(1000);
    expect(listener).toHaveBeenCalledTimes(1);
    delete document.documentElement.dataset.theme;
  });
});

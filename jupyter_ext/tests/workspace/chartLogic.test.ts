import { describe, expect, it } from 'vitest';

import { arrange, mergeCharts } from '../../src/workspace/charts/arrange';
import {
  boardParameters,
  chartKey,
  NO_STATE,
  readBoard
} from '../../src/workspace/charts/boardState';
import { asValue, chartsOf } from '../../src/workspace/charts/curveSeries';
import { hitsAt } from '../../src/workspace/charts/hover';
import { changeByKey } from '../../src/workspace/charts/keys';
import { prepare, xRange, yRange } from '../../src/workspace/charts/prepare';
import {
  type ChartData,
  DEFAULT_SETTINGS,
  type Series
} from '../../src/workspace/charts/series';
import { smooth } from '../../src/workspace/charts/smoothing';
import { withStretch } from '../../src/workspace/charts/stretch';
import { systemCharts } from '../../src/workspace/charts/systemSeries';
import { xTicks, yTicks } from '../../src/workspace/charts/ticks';
import {
  chosenTrials,
  readChoice
} from '../../src/workspace/charts/trialChoice';
import { curve, flatCurve, systemSample, trial } from '../shared/examples';

function series(change: Partial<Series> = {}): Series {
  const values = change.values ?? [3, 2, 1];
  return {
    key: 'a',
    label: 'loss',
    colour: 0,
    x: { batch: values.map((_, at) => at + 1) },
    values,
    ...change
  };
}

function chart(name: string, change: Partial<Series> = {}): ChartData {
  return {
    key: name,
    title: name,
    series: [series({ key: `k ${name}`, ...change })]
  };
}

describe('smoothing', () => {
  it('begins with the first value, not with zero', () => {
    const found = smooth([4, 4, 4], { kind: 'ema', weight: 0.9 });
    found.forEach(value => expect(value).toBeCloseTo(4));
  });

  it('weighs what was before, and leaves gaps and infinities as they are', () => {
    const [first, gap, infinite, last] = smooth([0, null, Infinity, 1], {
      kind: 'ema',
      weight: 0.5
    });
    expect([first, gap, infinite]).toEqual([0, null, Infinity]);
    expect(last).toBeCloseTo(2 / 3);
  });

  it('takes the mean of the points around each', () => {
    expect(smooth([0, 3, 6, null, 1], { kind: 'window', points: 3 })).toEqual([
      1.5,
      3,
      4.5,
      null,
      1
    ]);
  });
});

describe('the y axis', () => {
  const values = [...Array.from({ length: 99 }, (_, at) => 1 + at / 100), 1e6];

  it('follows the bulk of the values where outliers are ignored', () => {
    const drawn = prepare([series({ values })], 'batch', DEFAULT_SETTINGS);
    const ends = xRange(drawn, null, false);
    const ignore = { ...DEFAULT_SETTINGS, ignoreOutliers: true };
    expect(yRange(drawn, ends, DEFAULT_SETTINGS)[1]).toBeGreaterThan(1e6);
    expect(yRange(drawn, ends, ignore)[1]).toBeLessThan(3);
  });

  it('has the ends that were typed, whatever the values are', () => {
    const drawn = prepare([series()], 'batch', DEFAULT_SETTINGS);
    const typed = { ...DEFAULT_SETTINGS, minimum: -1, maximum: 50 };
    expect(yRange(drawn, [1, 3], typed)).toEqual([-1, 50]);
    const high = { ...DEFAULT_SETTINGS, minimum: 100 };
    expect(yRange(drawn, [1, 3], high)).toEqual([100, 200]);
  });

  it('fits what is seen', () => {
    const drawn = prepare(
      [series({ values: [100, 2, 1] })],
      'batch',
      DEFAULT_SETTINGS
    );
    expect(yRange(drawn, [2, 3], DEFAULT_SETTINGS)[1]).toBeLessThan(3);
  });

  it('says how many points a logarithmic axis has no place for', () => {
    const log = { ...DEFAULT_SETTINGS, logY: true, logX: true };
    const [drawn] = prepare(
      [series({ x: { batch: [0, 1, 2, 3] }, values: [1, -1, 0, 5] })],
      'batch',
      log
    );
    expect([drawn?.omitted, drawn?.x, drawn?.y]).toEqual([
      3,
      [1, 2, 3],
      [null, null, 5]
    ]);
  });

  it('marks what is infinite beyond the edge', () => {
    const [drawn] = prepare(
      [series({ values: [1, Infinity, -Infinity] })],
      'batch',
      DEFAULT_SETTINGS
    );
    expect(drawn?.infinities).toEqual([
      { x: 2, positive: true },
      { x: 3, positive: false }
    ]);
    expect(['Infinity', '-Infinity', 'NaN', 2].map(asValue)).toEqual([
      Infinity,
      -Infinity,
      null,
      2
    ]);
  });
});

describe('ticks', () => {
  it('are round numbers, with units of time that people count in', () => {
    const texts = (ticks: ReturnType<typeof xTicks>) =>
      ticks.map(({ text }) => text);
    expect(texts(xTicks('batch', [0, 1000], 5))).toEqual([
      '0',
      '200',
      '400',
      '600',
      '800',
      '1000'
    ]);
    expect(texts(xTicks('batch', [1, 3], 8))).toEqual(['1', '2', '3']);
    expect(texts(xTicks('relative', [0, 3600], 4))).toEqual([
      '0',
      '15 min',
      '30 min',
      '45 min',
      '1 h'
    ]);
    expect(texts(xTicks('relative', [0, 60], 6))).toEqual([
      '0',
      '10 s',
      '20 s',
      '30 s',
      '40 s',
      '50 s',
      '1:00'
    ]);
    expect(
      xTicks('time', [1_800_000_000, 1_800_003_600], 4).length
    ).toBeGreaterThan(2);
    expect(yTicks([0.1, 1000], true).map(({ at }) => at)).toContain(10);
    expect(yTicks([3.2, 3.9], true).length).toBeGreaterThan(1);
  });
});

describe('the y axis of what a trial uses', () => {
  it('begins at zero and repeats no text where there is no traffic', () => {
    const samples = [0, 5].map(seconds =>
      systemSample({
        time: 1_800_000_000 + seconds,
        metrics: { network_sent_bytes_per_second: 0 }
      })
    );
    const axes = { growths: {}, started: null };
    const [found] = systemCharts(samples, axes);
    const drawn = prepare(found!.series, 'time', DEFAULT_SETTINGS);
    const ends = xRange(drawn, null, false);
    const range = yRange(drawn, ends, DEFAULT_SETTINGS, found!.least);
    const texts = yTicks(range, false, found!.format).map(({ text }) => text);
    expect(texts).toEqual(['0 B/s', '500 B/s', '1 kB/s']);
    expect(yRange(drawn, ends, DEFAULT_SETTINGS, [0, 0])[0]).toBe(0);
    const rounded = yTicks([0, 1], false, at => `${Math.round(at)} B`);
    expect(rounded.map(({ text }) => text)).toEqual(['0 B', '1 B']);
  });
});

describe('what the address remembers', () => {
  it('comes back as it was', () => {
    const state = {
      ...NO_STATE,
      settings: {
        ...DEFAULT_SETTINGS,
        axis: 'epoch' as const,
        smoothing: { kind: 'ema' as const, weight: 0.6 },
        logY: true,
        ignoreOutliers: true,
        minimum: -1
      },
      zoom: [0.5, 12] as const,
      pinned: ['a,b;c%'],
      order: ['x', 'y'],
      merged: [['loss', 'acc;uracy']],
      find: 'los',
      line: 'trial 3'
    };
    expect(readBoard(boardParameters(state, 'p-'), 'p-')).toEqual(state);
  });

  it('is empty where all is as usual, and makes nothing of nonsense', () => {
    expect(Object.values(boardParameters(NO_STATE)).join('')).toBe('');
    expect(
      readBoard({ axis: 'miles', smooth: 'ema:7', zoom: '9:1', y: 'x:' })
    ).toEqual(NO_STATE);
  });

  it('has short keys even of metrics with thousands of letters', () => {
    const [one, other] = [
      chartKey(`${'n'.repeat(9999)}a`),
      chartKey(`${'n'.repeat(9999)}b`)
    ];
    expect(one).not.toBe(other);
    expect(one.length).toBeLessThan(80);
  });
});

describe('a board', () => {
  const charts = ['a', 'b', 'c', 'd'].map(name => chart(name));

  it('shows pinned charts first, then others in the order of the user', () => {
    const found = arrange(charts, {
      ...NO_STATE,
      pinned: ['c'],
      order: ['d', 'b'],
      hidden: ['a']
    });
    expect(found.pinned.map(({ key }) => key)).toEqual(['c']);
    expect(found.others.map(({ key }) => key)).toEqual(['d', 'b']);
    expect(found.hidden.map(({ key }) => key)).toEqual(['a']);
  });

  it('draws several metrics in one chart, told apart by colours', () => {
    const found = arrange(charts, {
      ...NO_STATE,
      merged: [['b', 'a', 'gone']]
    });
    expect(found.others.map(({ title }) => title)).toEqual(['b + a', 'c', 'd']);
    const merged = mergeCharts(charts.slice(0, 2));
    expect(merged.series.map(({ colour }) => colour)).toEqual([0, 1]);
    expect(new Set(merged.series.map(({ key }) => key)).size).toBe(2);
  });
});

describe('charts of an experiment', () => {
  const facts = {
    trials: [
      trial({ id: 3, hparams: { units: 1 } }),
      trial({ id: 4, number: 2, hparams: { units: 2 } })
    ],
    bestId: 4,
    metric: 'val_loss',
    clocks: [],
    lengths: { recordsPerEpoch: 0, slotsPerTrial: 1 }
  };

  it('have bold validation over faint training', () => {
    const [found] = chartsOf(
      [curve(), flatCurve([10], [1], { kind: 'validation', name: 'val_loss' })],
      { ...facts, bestId: 3 }
    );
    const looks = found?.series.map(({ label, look, dashed }) => [
      label,
      look,
      dashed
    ]);
    expect(looks).toEqual([
      ['loss', 'faint', true],
      ['val_loss', 'bold', false]
    ]);
    const drawn = prepare(found?.series ?? [], 'batch', DEFAULT_SETTINGS);
    expect(drawn.at(-1)?.series.label).toBe('val_loss');
  });

  it('name trials and what differs between them', () => {
    const [found] = chartsOf([curve(), curve({ trial_id: 4 })], facts);
    expect(found?.series.map(({ label, detail }) => [label, detail])).toEqual([
      ['trial 3', 'units=1'],
      ['trial 2 (best)', 'units=2']
    ]);
  });

  it('take the stretch that is zoomed in full', () => {
    const [found] = withStretch(
      [curve({ batch: [5, 15, 25, 35], mean: [4, 3, 2, 1] })],
      [flatCurve([12, 14, 16], [9, 8, 7])],
      [11, 20]
    );
    expect(found?.batch).toEqual([5, 12, 14, 16, 25, 35]);
    expect(found?.mean).toEqual([4, 9, 8, 7, 2, 1]);
  });

  it('are of the best trials, or of those that were chosen', () => {
    const many = [1, 2, 3].map(id => trial({ id, best_validation: 10 - id }));
    const ids = (text: string) =>
      chosenTrials(many, readChoice(text)!, true).map(({ id }) => id);
    expect(ids('best:2')).toEqual([2, 3]);
    expect(ids('newest:1')).toEqual([3]);
    expect(ids('3,1,77')).toEqual([1, 3]);
    expect(readChoice('best:x')).toBeNull();
  });
});

describe('the cursor', () => {
  const drawn = prepare(
    [
      series({ key: 'a', values: [1, null, 3], x: { batch: [1, 2, 3] } }),
      series({ key: 'b', values: [9, 8], x: { batch: [1, 2] } })
    ],
    'batch',
    DEFAULT_SETTINGS
  );

  it('tells the nearest value of each series, largest first, and none of those that have ended', () => {
    const at = (x: number) =>
      hitsAt(drawn, x, 0.4).map(hit => [
        hit.drawn.series.key,
        hit.x,
        hit.value
      ]);
    expect(at(1.2)).toEqual([
      ['b', 1, 9],
      ['a', 1, 1]
    ]);
    expect(at(3)).toEqual([['a', 3, 3]]);
    expect(hitsAt(drawn, 2.9, 0.4, [2, 2.95])).toEqual([]);
  });

  it('moves by arrow keys, and zooms by plus and minus', () => {
    const state = {
      cursor: 2,
      shown: [1, 9] as const,
      all: [1, 9] as const,
      stops: [1, 2, 3, 9]
    };
    const press = (key: string, shiftKey = false, change = {}) =>
      changeByKey({ key, shiftKey }, { ...state, ...change });
    expect(press('ArrowRight')).toEqual({ cursor: 3 });
    expect(press('Home')).toEqual({ cursor: 1 });
    expect(press('End')).toEqual({ cursor: 9 });
    expect(press('+', false, { cursor: 5 })).toEqual({ zoom: [3, 7] });
    expect(press('-', false, { cursor: 5, shown: [3, 7] })).toEqual({
      zoom: null
    });
    expect(press('ArrowRight', true, { shown: [3, 7] })).toEqual({
      zoom: [4, 8]
    });
    expect(press('x')).toBeNull();
  });
});

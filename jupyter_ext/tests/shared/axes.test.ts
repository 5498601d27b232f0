import { describe, expect, it } from 'vitest';

import {
  batchRange,
  flatRange,
  linearTicks,
  logarithmicTicks,
  powers,
  tickText
} from '../../src/shared/axes';

describe('a number on an axis', () => {
  it.each([
    [null, ''],
    [0, '0'],
    [0.1, '0.1'],
    [0.30000000000000004, '0.3'],
    [0.001, '0.001'],
    [0.0005, '5e-4'],
    [0.00015, '1.5e-4'],
    [-0.0005, '-5e-4'],
    [9999, '9999'],
    [10_000, '10k'],
    [12_345, '12.35k'],
    [-15_000, '-15k'],
    [1_500_000, '1.5M'],
    [999_999_999, '1000M'],
    [2e9, '2e+9']
  ])('%s is written %j', (value, text) => {
    expect(tickText(value)).toBe(text);
  });

  it.each([
    [[1e-4, 1.2e-4, 1.4e-4], 2e-5, ['1e-4', '1.2e-4', '1.4e-4']],
    [[0, 2.5e-4, 5e-4], 2.5e-4, ['0', '2.5e-4', '5e-4']],
    [[0.99985, 0.9999, 0.99995], 5e-5, ['0.99985', '0.9999', '0.99995']],
    [[999.99, 999.995, 1000], 0.005, ['999.99', '999.995', '1000']],
    [[1e12, 1.5e12], 5e11, ['1e+12', '1.5e+12']],
    [[12_500, 12_502], 2, ['12.5k', '12.502k']],
    [[1_000_000, 1_000_500], 500, ['1M', '1.0005M']],
    [[-0.30000000000000004, 0.1], 0.1, ['-0.3', '0.1']],
    [[5, 10, 15], 5, ['5', '10', '15']]
  ])('%j in steps of %s are told apart', (ticks, step, texts) => {
    expect(ticks.map(tick => tickText(tick, step))).toEqual(texts);
  });
});

describe('a linear grid', () => {
  it.each([
    [
      [0, 1],
      ['0', '0.25', '0.5', '0.75', '1']
    ],
    [
      [0.1, 0.35],
      ['0.1', '0.2', '0.3']
    ],
    [
      [-0.3, 0.3],
      ['-0.2', '0', '0.2']
    ],
    [
      [0.9998, 1],
      ['0.9998', '0.99985', '0.9999', '0.99995', '1']
    ],
    [
      [8e298, 3.2e299],
      ['1e+299', '2e+299', '3e+299']
    ],
    [
      [-1.7e308, 1.7e308],
      ['-1e+308', '0', '1e+308']
    ],
    [
      [8e-21, 3.2e-20],
      ['1e-20', '2e-20', '3e-20']
    ],
    [[0, Infinity], []],
    [[Number.NaN, 1], []]
  ])('of %j has numbers', ([min, max], texts) => {
    const ticks = linearTicks(min!, max!);
    const step = ticks[1]! - ticks[0]!;
    expect(ticks.map(tick => tickText(tick, step))).toEqual(texts);
  });
});

describe('a logarithmic grid', () => {
  const ticks = (from: number, decades: number) =>
    logarithmicTicks(10 ** from, Number(`9e${from + decades - 1}`));

  it('has all lines over few decades, powers of ten over more', () => {
    const few = ticks(-1, 3);
    expect(few).toHaveLength(3 * 9);
    expect(powers(few)).toEqual(few);
    const lines = powers(ticks(-13, 14));
    expect(lines).toHaveLength(14 * 9);
    expect(lines.filter(each => each !== null)).toEqual(
      Array.from({ length: 14 }, (_, index) => Number(`1e${index - 13}`))
    );
    expect(powers([])).toEqual([]);
  });

  it('has few enough of them over any range', () => {
    const lines = powers(ticks(-300, 600)).filter(each => each !== null);
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.length).toBeLessThanOrEqual(17);
  });
});

describe('an axis', () => {
  it('has room for the neighbours of a single batch', () => {
    expect(batchRange([60], 0, 120)).toEqual([59, 61]);
    expect(batchRange([60, 80], 60, 80)).toEqual([60, 80]);
  });

  it('fits a single value', () => {
    expect(flatRange(0.5, 0.5, false)).toEqual([0.45, 0.55]);
    expect(flatRange(-20, -20, false)).toEqual([-22, -18]);
    expect(flatRange(0, 0, false)).toEqual([-1, 1]);
    expect(flatRange(8, 8, true)).toEqual([4, 16]);
    expect(flatRange(1, 2, false)).toBeNull();
  });
});

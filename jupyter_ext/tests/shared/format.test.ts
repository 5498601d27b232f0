import { formatCount, formatLeft } from '../../src/shared/format';
import { describe, expect, it } from 'vitest';

import {
  formatAgo,
  formatBytes,
  formatClock,
  formatDuration,
  formatPercent,
  formatValue,
  shortUuid,
  wholePercent
} from '../../src/shared/format';
import { NOW } from './examples';

describe('a duration', () => {
  it.each([
    [0, '0 s'],
    [0.4, '0 s'],
    [59.4, '59 s'],
    [59.5, '1:00'],
    [60, '1:00'],
    [245, '4:05'],
    [3599.6, '1:00:00'],
    [3723, '1:02:03'],
    [172_799, '47:59:59'],
    [172_800, '2 d 0 h'],
    [1e9, '11574 d 1 h'],
    [-1, '—'],
    [Number.NaN, '—'],
    [Infinity, '—'],
    [null, '—'],
    [undefined, '—']
  ])('of %s s is %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});

describe('a size', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [999.4, '999 B'],
    [999.5, '1 kB'],
    [1234, '1.23 kB'],
    [34_000, '34 kB'],
    [999_499, '999 kB'],
    [999_500, '1 MB'],
    [1.5e9, '1.5 GB'],
    [2e12, '2 TB'],
    [1.2e18, '1200000 TB']
  ])('of %s bytes is %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('a value', () => {
  it.each([
    [0, '0'],
    [-0, '0'],
    [7, '7'],
    [-7, '-7'],
    [999_999, '999999'],
    [1_000_000, '1e+6'],
    [-12_345_678, '-1.235e+7'],
    [1.7976931348623157e308, '1.798e+308'],
    [0.98713, '0.9871'],
    [-0.98713, '-0.9871'],
    [0.001, '0.001'],
    [0.00099, '9.9e-4'],
    [0.0003672, '3.672e-4'],
    [1234.5, '1235'],
    [5e-324, '4.941e-324'],
    [1234.5678, '1235'],
    [99_999.9, '100000'],
    [123_456.7, '1.235e+5'],
    [Number.NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [-Infinity, '-Infinity'],
    ['NaN', 'NaN'],
    ['-Infinity', '-Infinity'],
    ['relu', 'relu'],
    ['', ''],
    [null, '—'],
    [undefined, '—'],
    [true, 'true'],
    [[32, 64], '[32,64]'],
    [{ rate: 0.1 }, '{"rate":0.1}']
  ])('%s is written %s', (value, text) => {
    expect(formatValue(value)).toBe(text);
  });

  it('of 40 characters is left whole; a longer one is cut to 40', () => {
    expect(formatValue('x'.repeat(40))).toBe('x'.repeat(40));
    expect(formatValue('x'.repeat(41))).toBe(
      `${'x'.repeat(24)}…${'x'.repeat(15)}`
    );
    expect(formatValue({ long: 'x'.repeat(99) })).toHaveLength(40);
  });

  it('is not cut in the middle of a character', () => {
    const text = formatValue('x' + '🙂'.repeat(40));
    expect(text).toBe(`x${'🙂'.repeat(23)}…${'🙂'.repeat(15)}`);
  });
});

describe('a share', () => {
  it.each([
    [0, '0 %'],
    [0.29, '29 %'],
    [0.57, '57 %'],
    [0.456, '45 %'],
    [0.999999, '99 %'],
    [0.9999999999999, '99 %'],
    [1, '100 %'],
    [1.5, '100 %'],
    [-0.5, '0 %'],
    [Number.NaN, '0 %'],
    [Infinity, '100 %']
  ])('of %s is %s', (fraction, text) => {
    expect(formatPercent(fraction)).toBe(text);
    expect(`${wholePercent(fraction)} %`).toBe(text);
  });

  it('of each hundredth is that hundredth', () => {
    for (let hundredth = 0; hundredth <= 100; hundredth++) {
      expect(wholePercent(hundredth / 100)).toBe(hundredth);
    }
  });
});

describe('a time', () => {
  it.each([
    [-5, 'just now'],
    [0, 'just now'],
    [59, 'just now'],
    [60, '1 min ago'],
    [3599, '59 min ago'],
    [3600, '1 h ago'],
    [86_399, '23 h ago']
  ])('%i s ago is said as %s', (seconds, text) => {
    expect(formatAgo(NOW - seconds * 1000, NOW)).toBe(text);
  });

  it('of another day is its date', () => {
    expect(formatAgo(NOW - 30 * 86_400_000, NOW)).toContain('2026');
  });

  it('that cannot be read is nothing', () => {
    expect(formatAgo('yesterday', NOW)).toBe('');
  });

  it('of day has two digits each', () => {
    expect(formatClock(new Date(2026, 10, 20, 4, 3, 2))).toBe('04:03:02');
  });
});

it('an id is known by its first eight characters', () => {
  expect(shortUuid('0123456789abcdef')).toBe('01234567');
  expect(shortUuid('ab')).toBe('ab');
});

describe('what people read', () => {
  it.each([
    [4, 'a few seconds'],
    [18, 'about 20 s'],
    [58, 'about 1 min'],
    [125, 'about 2 min'],
    [17 * 60, 'about 15 min'],
    [59 * 60, 'about 1 h'],
    [92 * 60, 'about 1 h 30 min'],
    [11.2 * 3600, 'about 11 h'],
    [71 * 3600, 'about 3 days']
  ])('%s seconds left are %s, as in Python', (seconds, text) => {
    expect(formatLeft(seconds)).toBe(text);
  });

  it('a count has commas', () => {
    expect([formatCount(12), formatCount(2694)]).toEqual(['12', '2,694']);
  });
});

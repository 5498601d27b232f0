import { describe, expect, it } from 'vitest';

import { formatHparams, hparamTexts } from '../../src/shared/hparams';
import type { Trial } from '../../src/shared/model';
import { trial } from './examples';

it('hyperparameters stand in alphabetical order, markup as the text it is', () => {
  const hparams = { units: 32, act: '<b>', rate: 1e-4, none: null };
  expect(formatHparams(hparams)).toBe('act=<b>, none=—, rate=1e-4, units=32');
  expect(formatHparams({})).toBe('');
});

it('hyperparameters with numbers in their names stand in the order of these', () => {
  expect(formatHparams({ h10: 1, h2: 2, h1: 3, b: 4 })).toBe(
    'b=4, h1=3, h2=2, h10=1'
  );
});

it('hyperparameters of a group have whole names', () => {
  const hparams = { z: [1, 2], a: { rate: 1, b: { c: 2 } } };
  expect(formatHparams(hparams)).toBe('a.b.c=2, a.rate=1, z=[1,2]');
});

describe('of several trials', () => {
  const texts = (...hparams: Array<Trial['hparams']>) => {
    const trials = hparams.map((each, id) => trial({ id, hparams: each }));
    const { own, common } = hparamTexts(trials);
    return [[...own.values()], common];
  };

  it('those that differ are told for each, the others once', () => {
    expect(
      texts({ a: 1, rate: 0.1, b: 'x' }, { a: 1, rate: 0.2, b: 'x' })
    ).toEqual([['rate=0.1', 'rate=0.2'], 'a=1, b=x']);
    expect(texts({ a: 1 }, { a: 1 })).toEqual([['', ''], 'a=1']);
  });

  it('those of a single one are all told for it', () => {
    expect(texts({ a: 1, b: 2 })).toEqual([['a=1, b=2'], '']);
    expect(texts()).toEqual([[], '']);
  });

  it('one that not all have is told for those that have it', () => {
    expect(texts({ a: 1, b: 2 }, { a: 1 })).toEqual([['b=2', ''], 'a=1']);
    expect(texts({ a: 1 }, { a: 1, b: 2 })).toEqual([['', 'b=2'], 'a=1']);
  });

  it('values are compared, not their texts', () => {
    expect(texts({ a: 0.10001, b: 1 }, { a: 0.10002, b: '1' })).toEqual([
      ['a=0.1, b=1', 'a=0.1, b=1'],
      ''
    ]);
  });
});

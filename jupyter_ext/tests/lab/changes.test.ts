import { describe, expect, it } from 'vitest';

import { changesOf } from '../../src/lab/panel/changes';
import { rowOf } from '../../src/lab/panel/rows';
import { experiment, NOW } from './facts';

describe('rows of one name', () => {
  const run = (id: number, config: object, change: object = {}) =>
    experiment({ id, config: config as Record<string, unknown>, ...change });
  const training = (rate: unknown, batches = 100) => ({
    hyperparameters: { rate, opt: { units: 32 } },
    searcher: { name: 'single', max_length: { batches } },
    reproducibility: { experiment_seed: rate }
  });

  it('say by what each differs from the run of that name before it', () => {
    const changes = changesOf([
      run(4, training({ type: 'log', minval: -4, maxval: -1 })),
      run(3, training({ type: 'const', val: 0.2 }, 2694)),
      run(2, training(0.1), { name: 'another' }),
      run(1, training(0.1))
    ]);
    expect([...changes]).toEqual([
      [3, 'rate=0.2, max_length.batches=2694'],
      [4, 'rate=10^-4 to 10^-1, max_length.batches=100']
    ]);
  });

  it('compare a group value by value, whether it is written out or fixed as a whole', () => {
    const whole = (val: unknown) => ({
      hyperparameters: { deep: { type: 'const', val } }
    });
    const changes = changesOf([
      run(4, { hyperparameters: { deep: { type: 'adam', x: 1 } } }),
      run(3, whole({ '<i>': 'w', x: 1, group: { y: [2] } })),
      run(2, whole({ '<i>': 'v', x: 1, group: { y: [2] } })),
      run(1, {
        hyperparameters: { deep: { '<i>': 'v', x: 1, group: { y: [2] } } }
      })
    ]);
    expect([...changes]).toEqual([
      [3, 'deep.<i>=w'],
      [4, 'deep.type=adam, no deep.<i>, no deep.group.y']
    ]);
  });

  it('say of a fork what was changed in it, whatever its name is', () => {
    const changes = changesOf([
      run(3, training(0.3), { name: 'mine', forked_from: 1 }),
      run(2, training(0.9), { name: 'mine' }),
      run(1, training(0.1))
    ]);
    expect(changes.get(3)).toBe('rate=0.3');
    const row = rowOf(experiment(), NOW, 'rate=0.3');
    expect(row.label).toContain('digits, rate=0.3, Running');
  });
});

import { describe, expect, it } from 'vitest';

import {
  axesOfTrial,
  batchesWithin,
  lengthsOf,
  placesOf,
  placesOfTimes
} from '../../src/workspace/charts/clock';
import {
  axesOf,
  type Axis,
  type Series
} from '../../src/workspace/charts/series';

function series(...axes: Axis[]): Series {
  const x = Object.fromEntries(axes.map(axis => [axis, [1]]));
  return { key: 'a', label: 'loss', colour: 0, x, values: [1] };
}

describe('the axes of a trial', () => {
  const clock = {
    trial_id: 3,
    started: 1000,
    batch: [10, 20, 40],
    time: [1010, 1020, 1060],
    epoch_batch: [20, 40],
    epoch: [1, 2]
  };
  const lengths = {
    hparams: { global_batch_size: 8 },
    recordsPerEpoch: 0,
    slotsPerTrial: 1
  };

  it('lead from batches to epochs, samples and times', () => {
    const places = placesOf(axesOfTrial(clock, lengths), [5, 20, 30]);
    expect(places).toEqual({
      batch: [5, 20, 30],
      epoch: [0.25, 1, 1.5],
      samples: [40, 160, 240],
      time: [1005, 1020, 1040],
      relative: [5, 20, 40]
    });
  });

  it('are only those that are known', () => {
    const bare = axesOfTrial(undefined, {
      hparams: {},
      recordsPerEpoch: 100,
      slotsPerTrial: 1
    });
    expect(placesOf(bare, [5])).toEqual({ batch: [5] });
    const both = [series('batch', 'epoch'), series('batch')];
    expect(axesOf([{ key: '', title: '', series: both }])).toEqual(['batch']);
  });

  it('have no time before the start of a trial and after its end', () => {
    const short = { ...clock, batch: [50], time: [1001] };
    const facts = {
      ...lengths,
      batches: 104,
      ended: new Date(1005_000).toISOString()
    };
    const ended = axesOfTrial(short, facts);
    expect(placesOf(ended, [0, 25, 50, 77, 104, 110]).relative).toEqual([
      0, 0.5, 1, 3, 5, 5
    ]);
    const running = axesOfTrial(short, { ...lengths, batches: 104 });
    expect(placesOf(running, [50, 104]).time).toEqual([1001, 1001]);
    const reported = { ...short, batch: [50, 104], time: [1001, 1002] };
    expect(placesOf(axesOfTrial(reported, facts), [104]).relative).toEqual([2]);
  });

  it('count samples only where the size of a batch is known', () => {
    const config = { records_per_epoch: 1, resources: { slots_per_trial: 2 } };
    expect(lengthsOf(config)).toEqual({ recordsPerEpoch: 1, slotsPerTrial: 2 });
    expect(lengthsOf({})).toEqual({ recordsPerEpoch: 0, slotsPerTrial: 1 });
    const samples = (size: number) =>
      placesOf(
        axesOfTrial(undefined, {
          ...lengthsOf(config),
          hparams: { global_batch_size: size }
        }),
        [10]
      ).samples;
    expect(samples(2)).toBeUndefined();
    expect(samples(512)).toEqual([5120]);
  });

  it('lead from a stretch of time, and from samples of the system, to batches', () => {
    const axes = axesOfTrial(clock, lengths);
    expect(batchesWithin(axes, 'relative', [20, 60])).toEqual([20, 40]);
    expect(batchesWithin(axes, 'samples', [80, 160])).toEqual([10, 20]);
    expect(placesOfTimes(axes, [1010, 1040, 5000]).batch).toEqual([10, 30, 40]);
  });
});

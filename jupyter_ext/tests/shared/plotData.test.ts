import { describe, expect, it } from 'vitest';

import { type Palette, styleLines } from '../../src/shared/palette';
import {
  align,
  asLine,
  commonBatches,
  groupCurves,
  hasPositive,
  isolated,
  type Line,
  panelOf,
  valueAt
} from '../../src/shared/plotData';
import { curve, flatCurve } from './examples';

/** Numbers that count how often they are looked at: the work that is done, whatever the machine. */
function counted(values: number[]): { values: number[]; reads: () => number } {
  let reads = 0;
  const proxy = new Proxy(values, {
    get: (target, name, receiver) => {
      reads += typeof name === 'string' && /^\d+$/.test(name) ? 1 : 0;
      return Reflect.get(target, name, receiver) as unknown;
    }
  });
  return { values: proxy, reads: () => reads };
}

const line = (batch: readonly number[], change: Partial<Line> = {}): Line => ({
  ...asLine(flatCurve([...batch], [...batch])),
  ...change
});

const upTo = (count: number, begin = 0, step = 1) =>
  Array.from({ length: count }, (_, index) => begin + index * step);

describe('a metric', () => {
  it.each([
    ['loss', 'loss'],
    ['val_loss', 'loss'],
    ['validation_accuracy', 'accuracy'],
    ['val_', 'val_'],
    ['validation_', 'validation_'],
    ['val_val_loss', 'val_loss'],
    ['value', 'value'],
    ['', '']
  ])('%j belongs to the panel %j', (name, panel) => {
    expect(panelOf(name)).toBe(panel);
  });

  it('stands beside its validation, that of the searcher first', () => {
    const curves = [
      curve({ name: 'loss' }),
      curve({ name: 'accuracy' }),
      curve({ name: 'val_accuracy', kind: 'validation' }),
      curve({ name: 'val_loss', kind: 'validation' })
    ];
    const groups = groupCurves(curves, 'val_accuracy');
    expect([...groups.keys()]).toEqual(['accuracy', 'loss']);
    expect(
      [...groups.values()].map(each => each.map(({ name }) => name))
    ).toEqual([
      ['accuracy', 'val_accuracy'],
      ['loss', 'val_loss']
    ]);
    expect([...groupCurves(curves).keys()]).toEqual(['loss', 'accuracy']);
    expect([...groupCurves(curves, 'unknown').keys()]).toEqual([
      'loss',
      'accuracy'
    ]);
  });

  it('that would meet another of its kind has a panel of its own by its full name, the others too', () => {
    const validations = ['val_loss', 'validation_loss', 'val_error'].map(name =>
      curve({ name, kind: 'validation' })
    );
    const groups = groupCurves(
      [curve({ name: 'loss' }), curve({ name: 'error' }), ...validations],
      'validation_loss'
    );
    expect([...groups].map(([name, found]) => [name, found.length])).toEqual([
      ['validation_loss', 1],
      ['loss', 1],
      ['error', 2],
      ['val_loss', 1]
    ]);
  });

  it('of a loop of the user stands beside its validation by their names', () => {
    const names = ['loss', 'val_loss', 'val_accuracy', 'lr'];
    for (const kind of ['training', 'logged'] as const) {
      const curves = names.map(name => curve({ name, kind }));
      const groups = groupCurves(curves, 'val_loss');
      expect(
        [...groups].map(([title, found]) => [title, ...found.map(c => c.name)])
      ).toEqual([
        ['loss', 'loss', 'val_loss'],
        ['val_accuracy', 'val_accuracy'],
        ['lr', 'lr']
      ]);
      expect(curves.map(each => asLine(each).validation)).toEqual([
        false,
        true,
        true,
        false
      ]);
    }
  });

  it('that is alone keeps its name, and comes first by either of its names', () => {
    const alone = curve({ name: 'val_loss', kind: 'validation' });
    const groups = groupCurves([curve({ name: 'lr' }), alone], 'loss');
    expect([...groups.keys()]).toEqual(['val_loss', 'lr']);
  });

  it('without points has no panel', () => {
    expect(groupCurves([flatCurve([], [])], 'loss').size).toBe(0);
    expect(groupCurves([], 'loss').size).toBe(0);
  });

  it('of validation that only repeats training is left out, another is not', () => {
    const training = flatCurve([10, 20, 30], [3, 2, 1]);
    const repeated = flatCurve([10, 30], [3, 1], { kind: 'validation' });
    const other = flatCurve([10, 30], [3, 1.5], { kind: 'validation' });
    const elsewhere = flatCurve([15], [3], { kind: 'validation' });
    const ofOther = flatCurve([10, 30], [3, 1], {
      kind: 'validation',
      trial_id: 4
    });
    expect(groupCurves([training, repeated]).get('loss')).toEqual([training]);
    for (const each of [other, elsewhere, ofOther]) {
      expect(groupCurves([training, each]).get('loss')).toEqual([
        training,
        each
      ]);
    }
  });
});

describe('a line', () => {
  it('has no band where minimum and maximum say no more than the mean', () => {
    expect(asLine(flatCurve([1, 2], [5, 6])).band).toBeNull();
    expect(asLine(flatCurve([1, 2], [5, null])).band).toBeNull();
  });

  it('has a band from minimum to maximum of each stretch', () => {
    const found = asLine(curve({ minimum: [1, 2, 1], maximum: [4, 2, 1] }));
    expect(found.band).toEqual({ minimum: [1, 2, 1], maximum: [4, 2, 1] });
    expect(found.mean).toEqual([3, 2, 1]);
  });

  it('has a gap for all that is no number', () => {
    const values = [
      1,
      'NaN',
      'Infinity',
      null,
      Number.NaN,
      -Infinity,
      undefined,
      8
    ];
    const found = asLine(flatCurve(upTo(8), values as number[]));
    expect(found.mean).toEqual([1, null, null, null, null, null, null, 8]);
    expect(found.band).toBeNull();
  });

  it('has nothing at or below zero where the scale is logarithmic', () => {
    const found = asLine(
      curve({ mean: [0.5, 0, -1], minimum: [-1, 0, -1], maximum: [1, 0, 0] }),
      true
    );
    expect(found.mean).toEqual([0.5, null, null]);
    expect(found.band).toEqual({
      minimum: [null, null, null],
      maximum: [1, null, null]
    });
  });

  it('is known by its trial, kind and name', () => {
    const keys = [
      curve(),
      curve({ trial_id: 4 }),
      curve({ kind: 'validation' }),
      curve({ name: 'x' })
    ];
    expect(new Set(keys.map(each => asLine(each).key)).size).toBe(4);
    expect(asLine(curve({ kind: 'validation' })).validation).toBe(true);
  });

  it('can be logarithmic if any value is above zero', () => {
    expect(hasPositive([flatCurve([1, 2], [-1, 0])])).toBe(false);
    expect(
      hasPositive([flatCurve([1], ['Infinity'] as unknown as number[])])
    ).toBe(false);
    expect(hasPositive([flatCurve([1], [-1]), flatCurve([1], [1e-9])])).toBe(
      true
    );
    expect(hasPositive([])).toBe(false);
  });
});

describe('lines on one x', () => {
  it('have all batches of all of them, ascending, each once', () => {
    expect(
      commonBatches([line([1, 3, 5]), line([2, 3, 6, 7]), line([])])
    ).toEqual([1, 2, 3, 5, 6, 7]);
    expect(commonBatches([])).toEqual([]);
  });

  it('say nothing where they have no point, which is no gap', () => {
    const common = commonBatches([line([1, 3]), line([2, 3, 4])]);
    expect(align(common, [1, 3], [10, null])).toEqual([
      10,
      undefined,
      null,
      undefined
    ]);
    expect(align(common, [2, 3, 4], [20, 30, 40])).toEqual([
      undefined,
      20,
      30,
      40
    ]);
    expect(align(common, [], [])).toEqual([
      undefined,
      undefined,
      undefined,
      undefined
    ]);
  });

  it('keep every value at its batch, whatever lines are merged', () => {
    // A line for each of many trials that report at their own pace: nothing may be moved or lost.
    const steps = [1, 2, 3, 5, 7, 11, 13];
    const lines = steps.map((step, index) => line(upTo(200, index, step)));
    const common = commonBatches(lines);
    expect(common).toEqual(
      [...new Set(common)].sort((one, other) => one - other)
    );
    for (const { batch, mean } of lines) {
      const aligned = align(common, batch, mean);
      const found = common.filter((_, at) => aligned[at] !== undefined);
      expect(found).toEqual(batch);
      expect(found.every(each => aligned[common.indexOf(each)] === each)).toBe(
        true
      );
    }
  });

  it('do not hang the page where a batch is nowhere, or there twice', () => {
    expect(align([1, 2, 3], [9, 1], [90, 10])).toEqual([
      undefined,
      undefined,
      undefined
    ]);
    const common = commonBatches([line([1, 1, 2]), line([2, 3])]);
    expect(align(common, [2, 3], [20, 30]).filter(Boolean)).toEqual([20, 30]);
  });

  it('show the newest value at or before the cursor', () => {
    const values = [undefined, 5, null, undefined, 7, undefined];
    expect([0, 1, 2, 3, 4, 5, 99].map(index => valueAt(values, index))).toEqual(
      [null, 5, 5, 5, 7, 7, 7]
    );
    expect(valueAt([], 3)).toBeNull();
    expect(valueAt([1], -1)).toBeNull();
  });
});

describe('the work for 100 000 points', () => {
  const COUNT = 100_000;

  it('is a few looks at each where two lines interleave', () => {
    const one = counted(upTo(COUNT, 0, 2));
    const other = counted(upTo(COUNT, 1, 2));
    const lines = [line([0]), line([0])].map((each, index) => ({
      ...each,
      batch: [one, other][index]!.values
    }));
    const common = commonBatches(lines);
    expect(common).toHaveLength(2 * COUNT);
    const merging = one.reads() + other.reads();
    expect(merging).toBeLessThanOrEqual(6 * COUNT);
    const aligned = align(common, one.values, one.values);
    expect([aligned[0], aligned[1], aligned[2 * COUNT - 2]]).toEqual([
      0,
      undefined,
      2 * (COUNT - 1)
    ]);
    // For each place of the common x one look, for each value two.
    expect(one.reads() + other.reads() - merging).toBeLessThanOrEqual(
      5 * COUNT
    );
  });

  it('is one look at each where training and validation share their batches', () => {
    const batches = upTo(COUNT);
    const one = counted(batches);
    const other = counted(batches);
    const lines = [one, other].map(({ values }) => ({
      ...line([0]),
      batch: values
    }));
    const common = commonBatches(lines);
    expect(common).toHaveLength(COUNT);
    expect(one.reads() + other.reads()).toBeLessThanOrEqual(5 * COUNT);
    expect(align(common, batches, batches)).toBe(batches);
  });

  it('is one look at each value of a curve', () => {
    const mean = counted(upTo(COUNT, 1));
    const found = asLine(flatCurve(upTo(COUNT), mean.values));
    expect(found.mean).toHaveLength(COUNT);
    expect(mean.reads()).toBeLessThanOrEqual(3 * COUNT);
    const before = mean.reads();
    expect(hasPositive([flatCurve(upTo(COUNT), mean.values)])).toBe(true);
    expect(mean.reads() - before).toBe(1);
  });
});

describe('the look of lines', () => {
  const PALETTE: Palette = {
    text: 'text',
    grid: 'grid',
    other: 'grey',
    trials: ['a', 'b', 'c']
  };
  const training = (trialId: number, batches = 3) =>
    line(upTo(batches), { trialId });
  const validation = (trialId: number, batches = 3) =>
    line(upTo(batches), { trialId, validation: true });

  it('has the colour of its trial; training is dashed and validation solid, also alone', () => {
    const styles = styleLines([training(3), validation(3)], [3], 3, PALETTE);
    expect(
      styles.map(({ colour, dashed, label }) => [colour, dashed, label])
    ).toEqual([
      ['a', true, 'training'],
      ['a', false, 'validation']
    ]);
    expect(styleLines([training(3)], [3], 3, PALETTE)[0]?.dashed).toBe(true);
    expect(styleLines([validation(3)], [3], 3, PALETTE)[0]?.dashed).toBe(false);
    const search = styleLines([training(5), validation(5)], [3, 5], 3, PALETTE);
    expect(search.map(({ colour, dashed }) => [colour, dashed])).toEqual([
      ['b', true],
      ['b', false]
    ]);
  });

  it('of several trials has a colour for each, the same in all charts', () => {
    const styles = styleLines(
      [training(9), training(5)],
      [3, 5, 9],
      5,
      PALETTE
    );
    expect(styles.map(({ colour, label }) => [colour, label])).toEqual([
      ['c', 'trial 9'],
      ['b', 'trial 5 (best)']
    ]);
    expect(styles[1]!.width).toBeGreaterThan(styles[0]!.width);
    const both = styleLines(
      [training(3), validation(3)],
      [3, 5],
      null,
      PALETTE
    );
    expect(both.map(({ label }) => label)).toEqual([
      'trial 3, training',
      'trial 3, validation'
    ]);
  });

  it('of more trials than colours gives one to the best alone', () => {
    const trials = [1, 2, 3, 4];
    const styles = styleLines(
      trials.map(id => training(id)),
      trials,
      4,
      PALETTE
    );
    expect(
      styles.map(({ colour, background }) => [colour, background])
    ).toEqual([
      ['grey', true],
      ['grey', true],
      ['grey', true],
      ['a', false]
    ]);
  });

  it('has points where there are few validations, or only one report', () => {
    const points = (each: Line) =>
      styleLines([each], [3], null, PALETTE)[0]?.points;
    expect([points(validation(3, 120)), points(validation(3, 121))]).toEqual([
      true,
      false
    ]);
    expect([points(training(3, 1)), points(training(3, 2))]).toEqual([
      true,
      false
    ]);
  });
});

it.each([
  [[1, 2, 3], []],
  [[1], [0]],
  [
    [null, 1, null, 2, 3, null, 4],
    [1, 6]
  ],
  // What other lines have in between is no gap.
  [[1, undefined, 2, undefined], []],
  [
    [undefined, 1, undefined, null, undefined, 2, undefined],
    [1, 5]
  ],
  [[null, undefined], []]
])('of %j the values at %j stand alone', (values, alone) => {
  expect(isolated(values)).toEqual(alone);
});

import { expect, test } from 'vitest';

import type { PlotColours } from '../../src/workspace/search/frame';
import {
  lineAt,
  parallelLayout,
  parallelScene,
  scalesOf
} from '../../src/workspace/search/parallelScene';
import { tableCsv } from '../../src/workspace/search/plotTable';
import { scaleOf } from '../../src/workspace/search/scales';
import {
  contourShapes,
  historyScene,
  paretoFront,
  ranks,
  scatterScene
} from '../../src/workspace/search/scenes';
import { svgText } from '../../src/workspace/search/shapes';
import {
  curvesOfMetric,
  stageBatches,
  stagesScene
} from '../../src/workspace/search/stagesScene';
import {
  type AnalysedTrial,
  analysedTrials,
  type Dimension,
  dimensionsOf,
  passing,
  readBrushes,
  smallerIsBetter,
  type TrialSummary
} from '../../src/workspace/search/trials';
import { curve, detail, trial } from '../shared/examples';

const COLOURS: PlotColours = {
  text: '#333333',
  strong: '#000000',
  grid: '#dddddd',
  other: '#bbbbbb',
  trials: ['#0072b2', '#d55e00', '#008060'],
  surface: '#ffffff',
  dark: false
};
const SIZE = { width: 600, height: 300 };

function analysed(
  number: number,
  hparams: Record<string, unknown>,
  metrics: Record<string, number>
): AnalysedTrial {
  return {
    key: `7/${number}`,
    experimentId: 7,
    trialId: number,
    number,
    label: `Trial ${number}`,
    state: 'COMPLETED',
    group: 0,
    hparams: new Map(Object.entries(hparams)),
    metrics: new Map(Object.entries(metrics)),
    at: null
  };
}

const dimension = (
  name: string,
  kind: Dimension['kind'] = 'hyperparameter',
  log = false
): Dimension => ({
  id: `${kind === 'metric' ? 'metric' : 'hp'}:${name}`,
  name,
  kind,
  log
});

const LOSS = dimension('loss', 'metric');

test('a validation counts before a training of the same name, and the searched metric is that of the trial', () => {
  const experiment = detail({ metric: 'val_loss', smaller_is_better: true });
  const metric = (kind: string, name: string, minimum: number) => ({
    kind,
    name,
    last: minimum + 1,
    last_batch: 9,
    minimum,
    maximum: minimum + 2
  });
  const summaries = [
    {
      trial_id: 3,
      experiment_id: 7,
      hparams: {},
      metrics: [
        metric('training', 'loss', 1),
        metric('validation', 'loss', 5),
        metric('validation', 'val_accuracy', 10)
      ]
    }
  ] as TrialSummary[];

  const [best] = analysedTrials(experiment, [trial()], summaries, 'best');
  const [last] = analysedTrials(experiment, [trial()], summaries, 'last');

  expect(Object.fromEntries(best!.metrics)).toEqual({
    'loss (training)': 1,
    loss: 5,
    val_accuracy: 12,
    val_loss: 0.9
  });
  expect(last!.metrics.get('loss')).toBe(6);
});

test('a metric of a search with several is as good as the search says', () => {
  const experiment = detail({
    metric: 'score',
    smaller_is_better: false,
    config: {
      searcher: {
        metrics: [
          { name: 'score', smaller_is_better: false },
          { name: 'latency' }
        ]
      }
    }
  });

  expect(smallerIsBetter('score', experiment)).toBe(false);
  expect(smallerIsBetter('latency', experiment)).toBe(true);
  expect(smallerIsBetter('val_accuracy', experiment)).toBe(false);
});

test('hyperparameters that are the same in all are constant; those that some lack are not', () => {
  const found = dimensionsOf(
    [
      analysed(1, { rate: 0.1, width: 8, kind: 'a' }, { loss: 1 }),
      analysed(2, { rate: 0.2, width: 8 }, {})
    ],
    name => name === 'rate'
  );

  expect(found.hyperparameters.map(({ name, log }) => [name, log])).toEqual([
    ['rate', true],
    ['kind', false]
  ]);
  expect(found.constant).toEqual(['width']);
  expect(found.metrics.map(({ name }) => name)).toEqual(['loss']);
});

test('an axis of powers has its powers as ticks, and equal distances between them', () => {
  const scale = scaleOf([1e-4, 1e-1], true);

  expect(scale.kind).toBe('log');
  expect(scale.ticks.map(({ text }) => text)).toEqual([
    '1e-4',
    '0.001',
    '0.01',
    '0.1'
  ]);
  const places = scale.ticks.map(({ place }) => place);
  expect(places[1]! - places[0]!).toBeCloseTo(places[3]! - places[2]!);
});

test('what is no number among numbers makes categories, numbers first by size', () => {
  const scale = scaleOf([10, 2, 'auto', true, undefined]);

  expect(scale.kind).toBe('category');
  expect(scale.ticks.map(({ text }) => text)).toEqual([
    '2',
    '10',
    'auto',
    'none',
    'true'
  ]);
  expect(scale.place('auto')).toBe(0.5);
  expect(scale.brush(0, 0.4)).toEqual(['2', '10']);
  expect(scale.stretch(['2', '10'])).toEqual([0, 0.4]);
});

test('values that are not finite have no place, and a single value is in the middle', () => {
  const scale = scaleOf([NaN, Infinity, 3]);

  expect(scale.place(NaN)).toBeNull();
  expect(scale.place(Infinity)).toBeNull();
  expect(scale.place(3)).toBeCloseTo(0.5);
  expect(scaleOf([]).ticks.length).toBeGreaterThan(0);
  const wide = scaleOf([-1.7e308, 1.7e308]);
  expect(wide.ticks.every(({ place }) => !Number.isNaN(place))).toBe(true);
});

test('a filter on an axis keeps the trials inside; a damaged one in the address keeps all', () => {
  const [rate, kind] = [dimension('rate'), dimension('kind')];
  const byId = new Map([rate, kind].map(each => [each.id, each]));
  const good = analysed(1, { rate: 0.5, kind: 'a' }, {});
  const bad = analysed(2, { rate: 'auto', kind: 'b' }, {});
  const none = analysed(3, {}, {});
  const kept = (text: string) =>
    [good, bad, none]
      .filter(passing(readBrushes(text), byId))
      .map(({ number }) => number);

  expect(kept('{"hp:rate":[0,1]}')).toEqual([1]);
  expect(kept('{"hp:kind":["b","none"]}')).toEqual([2, 3]);
  expect(kept('{"hp:gone":[0,1]}')).toEqual([1, 2, 3]);
  expect(kept('{"hp:rate":[1]}')).toEqual([1, 2, 3]);
  expect(kept('{nonsense')).toEqual([1, 2, 3]);
});

test('2,000 trials over ten axes are laid out in a few frames', () => {
  const names = Array.from({ length: 10 }, (_, at) => `h${at}`);
  const trials = Array.from({ length: 2000 }, (_, at) =>
    analysed(
      at,
      Object.fromEntries(names.map((name, i) => [name, (at * (i + 3)) % 97])),
      { loss: (at % 100) / 100 }
    )
  );
  const dimensions = [...names.map(name => dimension(name)), LOSS];
  const scales = scalesOf(trials, dimensions);
  const started = performance.now();

  const layout = parallelLayout({
    trials,
    dimensions,
    scales,
    colouring: { by: 'value', dimension: LOSS, smaller: true },
    size: { width: 1200, height: 340 },
    colours: COLOURS
  });
  const laidOut = performance.now();
  const scene = parallelScene(layout, { 'hp:h0': [0, 48] });

  // A drag on an axis works out the latter alone.
  expect(performance.now() - laidOut).toBeLessThan(150);
  expect(laidOut - started).toBeLessThan(1000);
  expect(scene.lines).toHaveLength(
    trials.filter(each => Number(each.hparams.get('h0')) <= 48).length
  );
  // Of each colour together: as many paths as colours, not as trials.
  const strokes = scene.shapes.flatMap(shape =>
    shape.kind === 'line' && shape.points.length === 22 ? [shape.stroke] : []
  );
  const changes = strokes.filter((stroke, at) => stroke !== strokes[at - 1]);
  expect(changes.length).toBeLessThanOrEqual(33);
});

test('pointing at a line finds its trial; a trial without a value runs below the axis', () => {
  const dimensions = [dimension('a'), dimension('b')];
  const trials = [
    analysed(1, { a: 0, b: 0 }, { loss: 1 }),
    analysed(2, { a: 10, b: 10 }, { loss: 2 }),
    analysed(3, { a: 5 }, {})
  ];
  const layout = parallelLayout({
    trials,
    dimensions,
    scales: scalesOf(trials, dimensions),
    colouring: { by: 'group' },
    size: SIZE,
    colours: COLOURS
  });
  const scene = parallelScene(layout, {});
  const second = scene.lines.find(({ key }) => key === '7/2')!;

  expect(lineAt(scene, 300, second.ys[0]!)?.key).toBe('7/2');
  expect(lineAt(scene, 300, second.ys[0]! + 60)).toBeNull();
  expect(scene.lines.find(({ key }) => key === '7/3')!.ys[1]).toBeGreaterThan(
    scene.bottom
  );
});

test('a scatter plot has named axes, and says how many trials have no place', () => {
  const scene = scatterScene({
    trials: [
      analysed(1, { rate: 0.1 }, { loss: 1 }),
      analysed(2, { rate: 0.2 }, { loss: NaN }),
      analysed(3, {}, { loss: 2 })
    ],
    x: dimension('rate'),
    y: LOSS,
    colouring: { by: 'none' },
    size: SIZE,
    colours: COLOURS
  });

  const texts = scene.shapes.flatMap(shape =>
    shape.kind === 'text' ? [shape.text] : []
  );
  expect(texts).toEqual(expect.arrayContaining(['rate', 'loss']));
  expect(scene.hits.map(({ key }) => key)).toEqual(['7/1']);
  expect(scene.omitted).toBe(2);
});

test('the line of the best value so far never gets worse', () => {
  const trials = [3, 1, 2].map((loss, at) => analysed(at + 1, {}, { loss }));

  const { shapes } = historyScene(trials, LOSS, true, SIZE, COLOURS);

  const line = shapes.findLast(
    shape => shape.kind === 'line' && shape.width === 2
  );
  const ys =
    line?.kind === 'line' ? line.points.filter((_, at) => at % 2 === 1) : [];
  expect(ys).toEqual(ys.toSorted((one, other) => one - other));
  expect(new Set(ys).size).toBe(2);
});

test('ranks begin with the best, and equal values share theirs', () => {
  const trials = [0.5, 0.1, 0.5, 0.9, NaN].map((loss, at) =>
    analysed(at, {}, { loss })
  );

  expect(Object.fromEntries(ranks(trials, LOSS, true))).toEqual({
    '7/1': 0,
    '7/0': 1 / 3,
    '7/2': 1 / 3,
    '7/3': 1
  });
});

test('on the Pareto front is what no other beats in all metrics', () => {
  const trials = [
    analysed(1, {}, { loss: 1, speed: 1 }),
    analysed(2, {}, { loss: 2, speed: 2 }),
    analysed(3, {}, { loss: 2, speed: 1 }),
    analysed(4, {}, { loss: 1, speed: 1 }),
    analysed(5, {}, { loss: 0 }),
    analysed(6, {}, { loss: -Infinity, speed: 9 })
  ];

  const front = paretoFront(trials, [
    { name: 'loss', smaller: true },
    { name: 'speed', smaller: false }
  ]);

  expect(front.toSorted()).toEqual(['7/1', '7/2', '7/4']);
});

test('a contour of fewer than three trials is not drawn', () => {
  const [a, b] = [dimension('a'), dimension('b')];
  const trials = [1, 2, 3].map(at =>
    analysed(at, { a: at, b: at }, { loss: at })
  );
  const drawn = (count: number) => {
    const own = trials.slice(0, count);
    return scatterScene({
      trials: own,
      x: a,
      y: b,
      colouring: { by: 'none' },
      size: SIZE,
      colours: COLOURS,
      below: contourShapes(own, [a, b, LOSS], true, COLOURS)
    }).shapes.filter(({ kind }) => kind === 'rect').length;
  };

  expect(drawn(2)).toBe(0);
  expect(drawn(3)).toBeGreaterThan(1000);
});

test('a metric that a loop reports with its training is drawn while the trials train', () => {
  const training = curve({ name: 'val_loss' });
  const scene = stagesScene({
    trials: [analysed(3, { lr: 1 }, { val_loss: 1 })],
    raw: [trial({ state: 'COMPLETED' })],
    curves: [training, curve({ name: 'loss' })],
    metric: 'val_loss',
    colouring: {
      by: 'value',
      dimension: { id: 'number', name: 'number', kind: 'number', log: false },
      smaller: true
    },
    size: SIZE,
    colours: COLOURS
  });
  expect(scene.hits).toHaveLength(training.batch.length);
  expect(scene.omitted).toBe(0);
  const validation = curve({ name: 'val_loss', kind: 'validation' });
  const both = [training, validation];
  expect(curvesOfMetric(both, 'val_loss')).toEqual([validation]);
  expect(curvesOfMetric(both, 'val_loss (training)')).toEqual([training]);
  expect(curvesOfMetric(both, 'accuracy')).toEqual([]);
});

test('stages are the batches at which trials of each length ended', () => {
  const stages = [
    trial({ id: 1, state: 'COMPLETED', stages: [1], batches: 25 }),
    trial({ id: 2, state: 'COMPLETED', stages: [1, 4], batches: 100 }),
    trial({ id: 3, state: 'RUNNING', stages: [1, 4], batches: 60 })
  ];

  expect(stageBatches(stages)).toEqual([25, 100]);
  expect(stageBatches(stages.slice(0, 1))).toEqual([]);
});

test('an SVG file and a CSV file keep names as text, of whatever is in them', () => {
  const html = '<img src=x onerror="alert(1)">\u0001';
  const svg = svgText(
    html,
    [{ kind: 'text', x: 0, y: 0, text: html, fill: '#000000' }],
    SIZE,
    COLOURS
  );

  expect(svg).not.toContain('<img');
  expect(svg).not.toContain('\u0001');
  expect(
    tableCsv({ columns: ['=1+1', 'a"b'], rows: [['x,y', 0.1 + 0.2]] })
  ).toBe('\'=1+1,"a""b"\r\n"x,y",0.30000000000000004\r\n');
});

import { describe, expect, it } from 'vitest';

import {
  bestCheckpoint,
  bestTrial,
  checkpointMetric,
  failuresOf,
  progressOf,
  shownTrial,
  whereText
} from '../../src/shared/facts';
import type { ExperimentState, TrialState } from '../../src/shared/model';
import { isTerminal } from '../../src/shared/model';
import {
  changesCurves,
  emptyView,
  hasEnded,
  logTrial,
  withConnection,
  withEvent,
  withParts
} from '../../src/shared/view';
import {
  checkpoint,
  detail,
  statesOf,
  streamEvent,
  trial,
  userError,
  view
} from './examples';

describe('an end', () => {
  it('is each state after which nothing happens, and no other', () => {
    const ended = (name: 'ExperimentState' | 'TrialState') =>
      statesOf(name).filter(state =>
        isTerminal(state as ExperimentState | TrialState)
      );
    expect(ended('ExperimentState')).toEqual([
      'CANCELED',
      'COMPLETED',
      'ERROR',
      'DELETED'
    ]);
    expect(ended('TrialState')).toEqual(['CANCELED', 'COMPLETED', 'ERROR']);
  });

  it('of a view is that of its experiment', () => {
    expect(hasEnded(emptyView(7))).toBe(false);
    expect(hasEnded(view())).toBe(false);
    expect(hasEnded(view({ experiment: detail({ state: 'ERROR' }) }))).toBe(
      true
    );
  });
});

describe('an event', () => {
  it('of the experiment keeps what it does not tell of', () => {
    const report = [
      {
        what: 'x',
        how: 'value',
        size: 1,
        cell: '1',
        status: 'new',
        note: ''
      } as const
    ];
    const before = view({ experiment: detail({ report: [...report] }) });
    const after = withEvent(
      before,
      streamEvent('experiment', { state: 'PAUSED' }, null)
    );
    expect(after.experiment).toEqual({
      ...detail({ state: 'PAUSED' }),
      report
    });
    expect(before.experiment?.state).toBe('ACTIVE');
    expect(
      withEvent(emptyView(7), streamEvent('experiment', { id: 7 }, null))
        .experiment
    ).toEqual({
      id: 7,
      report: []
    });
  });

  it('of a trial puts it into its place, once', () => {
    const before = view({ trials: [trial({ id: 1 }), trial({ id: 3 })] });
    const added = withEvent(before, streamEvent('trial', trial({ id: 2 }), 2));
    expect(added.trials.map(({ id }) => id)).toEqual([1, 2, 3]);
    const changed = withEvent(
      added,
      streamEvent('trial', trial({ state: 'ERROR' }))
    );
    expect(changed.trials.map(({ state }) => state)).toEqual([
      'RUNNING',
      'RUNNING',
      'ERROR'
    ]);
    expect(before.trials).toHaveLength(2);
  });

  it('of a checkpoint orders by trial and batch, each checkpoint once', () => {
    const events = [
      checkpoint({ uuid: 'b', trial_id: 4, batch: 10 }),
      checkpoint({ uuid: 'c', batch: 90 }),
      checkpoint({ uuid: 'a', batch: 10 }),
      checkpoint({ uuid: 'c', batch: 90, state: 'DELETED' })
    ].map(each => streamEvent('checkpoint', each));
    const found = events.reduce(withEvent, view()).checkpoints;
    expect(found.map(({ uuid, state }) => [uuid, state])).toEqual([
      ['a', 'COMPLETED'],
      ['c', 'DELETED'],
      ['b', 'COMPLETED']
    ]);
  });

  it('of metrics moves its trial on, and never back', () => {
    const moved = withEvent(view(), streamEvent('metrics', { batch: 50 }));
    expect(moved.trials[0]?.batches).toBe(50);
    expect(withEvent(moved, streamEvent('metrics', { batch: 45 }))).toBe(moved);
    expect(withEvent(moved, streamEvent('metrics', { batch: 60 }, 99))).toBe(
      moved
    );
    expect(withEvent(moved, streamEvent('metrics', { batch: 60 }, null))).toBe(
      moved
    );
    expect(withEvent(moved, streamEvent('metrics', {}))).toBe(moved);
  });

  it('of an error shows it at its trial at once', () => {
    const failed = withEvent(view(), streamEvent('error', userError()));
    expect(failed.trials[0]?.error).toEqual(userError());
    expect(withEvent(failed, streamEvent('error', userError(), 99))).toBe(
      failed
    );
    expect(withEvent(failed, streamEvent('error', userError(), null))).toBe(
      failed
    );
  });

  it('of another trial says nothing to the view of one', () => {
    const before = view({ trialId: 3 });
    expect(withEvent(before, streamEvent('trial', trial({ id: 4 }), 4))).toBe(
      before
    );
    const other = checkpoint({ trial_id: 4 });
    expect(withEvent(before, streamEvent('checkpoint', other, 4))).toBe(before);
    expect(
      withEvent(before, streamEvent('trial', trial({ batches: 99 }))).trials
    ).toHaveLength(1);
    expect(
      withEvent(before, streamEvent('checkpoint', checkpoint())).checkpoints
    ).toHaveLength(1);
  });

  it('of a kind that is not known changes nothing', () => {
    const before = view();
    expect(withEvent(before, streamEvent('weather', {}))).toBe(before);
  });

  it.each([
    ['metrics', true],
    ['trial', true],
    ['experiment', true],
    ['checkpoint', false],
    ['error', false]
  ])('%s asks for curves: %s', (name, expected) => {
    expect(changesCurves(streamEvent(name, {}))).toBe(expected);
  });
});

it('parts and connection replace what was there, and nothing else', () => {
  const before = view();
  const after = withConnection(withParts(before, { trials: [] }), {
    kind: 'ended'
  });
  expect(after).toEqual({
    ...before,
    trials: [],
    connection: { kind: 'ended' }
  });
});

describe('the trial whose log is shown', () => {
  const of = (states: readonly TrialState[], change = {}) =>
    logTrial(
      view({
        trials: states.map((state, index) => trial({ id: index + 1, state })),
        ...change
      })
    )?.id;

  it('is the newest that runs, else the newest of all', () => {
    expect(of(['RUNNING', 'RUNNING', 'COMPLETED'])).toBe(2);
    expect(of(['COMPLETED', 'ERROR'])).toBe(2);
    expect(of([])).toBeUndefined();
  });

  it('is one that failed where the experiment has failed', () => {
    const experiment = detail({ state: 'ERROR' });
    expect(of(['ERROR', 'COMPLETED'], { experiment })).toBe(1);
  });

  it('is the one that was asked for', () => {
    expect(of(['COMPLETED', 'RUNNING'], { trialId: 1 })).toBe(1);
    expect(of(['COMPLETED'], { trialId: 9 })).toBeUndefined();
  });
});

describe('the best trial', () => {
  const best = (smaller: boolean, ...values: Array<number | null>) => {
    const trials = values.map((value, index) =>
      trial({ id: index + 1, best_validation: value })
    );
    return bestTrial(
      view({ experiment: detail({ smaller_is_better: smaller }), trials })
    )?.id;
  };

  it('has the largest or the smallest value, as the experiment says', () => {
    expect(best(false, 0.5, 0.9, 0.7)).toBe(2);
    expect(best(true, 0.5, 0.9, 0.1)).toBe(3);
    expect(best(true, 0, -1, null)).toBe(2);
    expect(best(false, -2, -1)).toBe(2);
  });

  it('is one that has been validated, and the first of equal ones', () => {
    expect(best(false, null, 0)).toBe(2);
    expect(best(true, 0.5, 0.5)).toBe(1);
    expect(best(true, null, null)).toBeUndefined();
    expect(best(true)).toBeUndefined();
  });
});

describe('progress', () => {
  it('of one trial is that of its batches', () => {
    expect(progressOf(view({ trialId: 3 }))).toBe(0.4);
    const of = (change: object) =>
      progressOf(view({ trialId: 3, trials: [trial(change)] }));
    expect(of({ state: 'COMPLETED', batches: 10 })).toBe(1);
    expect(of({ target_batches: 0 })).toBe(0);
    expect(of({ batches: 500 })).toBe(1);
  });

  it('of an experiment is what the master says, or its only trial if that is further', () => {
    expect(progressOf(view())).toBe(0.456);
    expect(progressOf(view({ trials: [trial({ batches: 70 })] }))).toBe(0.7);
    const many = view({ trials: [trial({ batches: 70 }), trial({ id: 4 })] });
    expect(progressOf(many)).toBe(0.456);
  });

  it('is 0 before anything is known and 1 at the end, and never beyond', () => {
    expect(progressOf(emptyView(7))).toBe(0);
    expect(
      progressOf(
        view({ experiment: detail({ state: 'COMPLETED', progress: 0 }) })
      )
    ).toBe(1);
    expect(progressOf(view({ experiment: detail({ progress: 3 }) }))).toBe(1);
    expect(
      progressOf(view({ experiment: detail({ progress: -3 }), trials: [] }))
    ).toBe(0);
  });
});

it('the trial of a view is that which it is of', () => {
  expect(shownTrial(view())).toBeNull();
  expect(shownTrial(view({ trialId: 3 }))?.id).toBe(3);
  expect(shownTrial(view({ trialId: 4 }))).toBeNull();
});

it("the metric of a checkpoint is the searcher's, else another, else none", () => {
  const metrics = { val_loss: 'NaN', val_accuracy: 0.9 };
  expect(checkpointMetric(checkpoint({ metrics }), 'val_accuracy')).toEqual({
    name: 'val_accuracy',
    value: 0.9
  });
  expect(checkpointMetric(checkpoint({ metrics }), '')).toEqual({
    name: 'val_loss',
    value: 'NaN'
  });
  expect(
    checkpointMetric(checkpoint({ metrics: {} }), 'val_accuracy')
  ).toBeNull();
});

it.each([
  [true, 'b'],
  [false, 'c']
])('the best checkpoint, smaller is better: %s', (smaller, best) => {
  const values = [0.2, 0.1, 0.9, 'NaN', undefined];
  const found = values.map((loss, index) =>
    checkpoint({
      uuid: 'abcde'[index]!,
      metrics: loss === undefined ? {} : { loss }
    })
  );
  expect(bestCheckpoint(found, 'loss', smaller)?.uuid).toBe(best);
  expect(bestCheckpoint(found, 'accuracy', smaller)).toBeNull();
  expect(bestCheckpoint([], 'loss', smaller)).toBeNull();
});

describe('a failure', () => {
  it('is told once however many trials have it, before that of the experiment', () => {
    const error = userError({ batch: 30 });
    const trials = [3, 4, 7].map(id => trial({ id, state: 'ERROR', error }));
    const experiment = detail({
      state: 'ERROR',
      error: userError({ traceback: 'Other' })
    });
    expect(failuresOf(view({ trials, experiment }))).toEqual([
      {
        headline:
          'Trial 3 failed at batch 30, in cell [5], line 3; so did trials 4 and 7: ValueError: bad shape',
        traceback: error.traceback
      },
      {
        headline:
          'The experiment failed before its first batch, in cell [5], line 3: ValueError: bad shape',
        traceback: 'Other'
      }
    ]);
    expect(
      failuresOf(view({ trials, experiment: detail({ error }) }))
    ).toHaveLength(1);
    const [two] = failuresOf(view({ trials: trials.slice(0, 2) }));
    expect(two?.headline).toMatch(/; so did trial 4: ValueError: bad shape$/);
  });

  it('is not what a trial says that refuses its hyperparameters', () => {
    const error = userError({ type: 'InvalidHP' });
    const refused = trial({ id: 3, state: 'CANCELED', error });
    expect(failuresOf(view({ trials: [refused] }))).toEqual([]);
    const killed = trial({ id: 4, state: 'CANCELED', error: userError({}) });
    expect(failuresOf(view({ trials: [killed] }))).toHaveLength(1);
  });

  it('of which a sentence says all is one line, the same for all trials it befell; a notice is told without a failure', () => {
    const message = 'The loss became NaN. Lower the learning rate.';
    const error = { type: 'DivergedError', message, traceback: '', batch: 7 };
    const notice = 'The loss became NaN at batch 4.';
    const trials = [
      trial({ id: 3, state: 'ERROR', error }),
      trial({ id: 4, state: 'ERROR', error: { ...error, batch: 9 } }),
      trial({ id: 5, state: 'RUNNING', warning: notice })
    ];
    expect(failuresOf(view({ trials }))).toEqual([
      {
        headline: `Trial 3 failed at batch 7; so did trial 4: DivergedError: ${message}`,
        traceback: ''
      },
      { headline: `Trial 5: ${notice}`, traceback: '' }
    ]);
  });

  it('after which a trial goes on says so, and of one that went well is not told', () => {
    const retried = trial({ error: userError() });
    expect(failuresOf(view({ trials: [retried] }))[0]?.headline).toMatch(
      /; it is tried again: ValueError: bad shape$/
    );
    const done = trial({ state: 'COMPLETED', error: userError() });
    expect(failuresOf(view({ trials: [done] }))).toEqual([]);
    expect(failuresOf(emptyView(7))).toEqual([]);
  });

  it('has the beginning of a long message in its headline, in one line', () => {
    const headlineOf = (message: string) =>
      failuresOf(
        view({
          trials: [trial({ state: 'ERROR', error: userError({ message }) })]
        })
      )[0]?.headline;
    expect(headlineOf(`two\n  lines ${'🙂'.repeat(300)}`)).toMatch(
      /: ValueError: two lines (🙂){190}…$/u
    );
    expect(headlineOf('')).toMatch(/: ValueError$/);
  });

  it('without a traceback has its type and message, where the headline is too short for them', () => {
    const message = 'bad\nshape';
    const error = userError({ traceback: '', message });
    const trials = [trial({ state: 'ERROR', error })];
    expect(failuresOf(view({ trials }))[0]?.traceback).toBe(
      'ValueError: bad\nshape'
    );
  });

  it.each([
    [
      { cell: null, file: 'model.py', line: 9, batch: 1 },
      ' at batch 1, in model.py, line 9'
    ],
    [{ cell: null, file: null, line: 9 }, ' before its first batch'],
    [
      { cell: 4, line: 2, batch: 7, rank: 1 },
      ' at batch 7, in cell [4], line 2, on rank 1'
    ],
    [
      { cell: 0, file: 'a.py', line: null },
      ' before its first batch, in cell [0], a.py'
    ]
  ])('%j is at its place', (change, words) => {
    expect(whereText(userError(change))).toBe(words);
  });
});

import { describe, expect, it } from 'vitest';
import { ScriptedTransport } from '../shared/scriptedTransport';

import { fits } from '../../src/lab/fits';
import { rowAfterKey } from '../../src/lab/panel/keys';
import { problemLine, rowOf } from '../../src/lab/panel/rows';
import { headerText, screenOf } from '../../src/lab/panel/screen';
import { slotsKey, SlotsWatch } from '../../src/lab/panel/slots';
import { experiment, listView, NOW, status, userError } from './facts';

const LOST = {
  kind: 'lost',
  since: NOW,
  state: 'unreachable',
  message: 'The master does not answer',
  remedy: 'Look at its log.'
} as const;

describe('a row', () => {
  it('says state, progress, time left and the best metric of what runs', () => {
    const row = rowOf(experiment(), NOW);
    expect(row.detail).toBe('Running · 45 % · about 2 min left');
    expect([row.metric, row.metricName]).toEqual(['0.9871', '↑ val_accuracy']);
    expect(row.shape).toBe('running');
    expect(row.progress).toBe(0.456);
    expect(row.label).toBe(
      'Experiment 7, digits, Running · 45 % · about 2 min left, best val_accuracy 0.9871, higher is better'
    );
    const lower = rowOf(experiment({ smaller_is_better: true }), NOW);
    expect(lower.metricName).toBe('↓ val_accuracy');
    expect(lower.title).toContain('best val_accuracy 0.9871, lower is better');
  });

  it('says what a queued experiment waits for', () => {
    const row = rowOf(
      experiment({ started: null, waits_for: '2 of 4 slots: #7 has them' }),
      NOW
    );
    expect([row.shape, row.problem]).toEqual([
      'waiting',
      'waits for 2 of 4 slots: #7 has them'
    ]);
    expect(row.label).toContain('waits for 2 of 4 slots: #7 has them');
  });

  it('does not invent a time, or a metric', () => {
    const row = rowOf(
      experiment({ seconds_left: null, best_validation: null }),
      NOW
    );
    expect(row.detail).toBe('Running · 45 %');
    expect([row.metric, row.metricName]).toEqual(['', '']);
  });

  it('calls queued what has no slot yet', () => {
    const row = rowOf(experiment({ started: null, progress: 0 }), NOW);
    expect(row.detail).toBe('Queued · 10 min ago');
    expect(row.shape).toBe('waiting');
  });

  it.each([
    ['COMPLETED', 'Completed · 5 min ago', 'done'],
    ['CANCELED', 'Stopped · 5 min ago', 'stopped'],
    ['ERROR', 'Failed · 5 min ago', 'failed']
  ] as const)(
    'says of %s when it ended, without a bar',
    (state, detail, shape) => {
      const row = rowOf(
        experiment({ state, ended: '2026-11-20T11:55:00Z' }),
        NOW
      );
      expect([row.detail, row.shape, row.progress]).toEqual([
        detail,
        shape,
        null
      ]);
    }
  );

  it('has the number of its experiment', () => {
    expect(rowOf(experiment({ id: 12 }), NOW).number).toBe('#12');
  });

  it('does not call well a search of which trials failed', () => {
    const partly = { state: 'COMPLETED', trials: 8, failed_trials: 2 } as const;
    const row = rowOf(
      experiment({ ...partly, ended: '2026-11-20T11:55:00Z' }),
      NOW
    );
    expect([row.detail, row.shape]).toEqual([
      'Completed · 5 min ago',
      'partly'
    ]);
    expect(row.problem).toBe('2 of 8 trials failed');
    expect(row.label).toContain('2 of 8 trials failed');
  });

  it('says what a training waits for', () => {
    const notice = 'waits for disk space in /srv (checkpoint of batch 6)';
    const row = rowOf(experiment({ notice }), NOW);
    expect([row.shape, row.problem]).toEqual(['waiting', notice]);
    expect(row.label).toContain(notice);
  });

  it('says what is paused, and what is only a test', () => {
    const row = rowOf(
      experiment({ state: 'PAUSED', seconds_left: null, test: true }),
      NOW
    );
    expect(row.detail).toBe('Paused · test · 45 %');
    expect(row.shape).toBe('paused');
  });

  it('says of a failure the cell, the type without its module, and the message', () => {
    const error = userError({ traceback: 'a.module.ValueError: bad shape' });
    const row = rowOf(experiment({ state: 'ERROR', error }), NOW);
    expect(row.problem).toBe('Cell [5]: ValueError: bad shape');
    expect(row.label).toContain(row.problem);
    expect(problemLine(userError({ prompts: false }))).toBe(
      'Code cell 5: ValueError: bad shape'
    );
  });

  it('says the first line of a message', () => {
    const found = userError({
      traceback: '',
      message: 'killed\nby 9',
      cell: null
    });
    expect(problemLine(found)).toBe('ValueError: killed');
    expect(problemLine({ ...found, traceback: '', batch: 7 })).toBe(
      'At batch 7: ValueError: killed'
    );
    const notice = 'The loss became NaN at batch 4.';
    expect(rowOf(experiment({ warning: notice }), NOW).problem).toBe(notice);
  });
});

describe('a row of a run in a kernel', () => {
  const run = experiment({ in_kernel: true });

  it('says where it trains', () => {
    const row = rowOf(run, NOW);
    expect(row.detail).toContain('Running · in a kernel · ');
    expect(row.label).toContain('in a kernel');
  });

  it('can be stopped, and not be paused', () => {
    const actions = ['pause', 'resume', 'stop', 'kill'] as const;
    expect(actions.filter(action => fits(action, run))).toEqual(['stop']);
  });

  it('takes no slot of the master', () => {
    expect(slotsKey(listView({ experiments: [run] }))).toBe('');
  });
});

describe('the screen', () => {
  it('looks for the master before anything is known', () => {
    const view = listView({ status: null, connection: { kind: 'connecting' } });
    expect(screenOf(view, '0.1.0')).toMatchObject({
      title: 'Looking for the master',
      busy: true
    });
  });

  it.each([
    [
      { state: 'none', can_start: true },
      'start',
      'No master is running',
      'calm'
    ],
    [
      { state: 'none', can_start: false },
      'retry',
      'No master is running',
      'calm'
    ],
    [{ state: 'starting' }, null, 'The master is starting…', 'calm'],
    [
      { state: 'unauthorised' },
      'retry',
      'The master refuses access',
      'problem'
    ],
    [{ state: 'mismatch' }, 'retry', 'Versions do not match', 'problem'],
    [{ state: 'unreachable' }, 'retry', 'The master does not answer', 'problem']
  ] as const)(
    'has words and a button for %j',
    (change, action, title, tone) => {
      const found = status({
        ...change,
        message: 'What is wrong.',
        remedy: 'What to do.'
      });
      const screen = screenOf(
        listView({ status: found, connection: { kind: 'connecting' } }),
        '0.1.0'
      );
      expect(screen).toMatchObject({ kind: 'message', title, action, tone });
      expect(screen).toHaveProperty(
        'body',
        expect.stringContaining('What to do.')
      );
    }
  );

  it('says how to begin where there is no experiment', () => {
    expect(screenOf(listView(), '0.1.0')).toMatchObject({
      title: 'No experiments yet',
      action: 'submit'
    });
  });

  it('asks for a reload where page and server differ, whatever else there is', () => {
    const view = listView({ experiments: [experiment()] });
    expect(screenOf(view, '0.2.0')).toMatchObject({
      title: 'Versions do not match',
      action: 'reload'
    });
  });

  it('does not take the unknown version of a failed request for another one', () => {
    const view = listView({
      status: status({ state: 'unreachable', version: '' }),
      connection: { kind: 'connecting' }
    });
    expect(screenOf(view, '0.1.0')).toMatchObject({
      title: 'The master does not answer'
    });
  });

  it('keeps the list while the connection is lost, and says since when', () => {
    const experiments = [experiment()];
    const screen = screenOf(
      listView({ experiments, connection: LOST }),
      '0.1.0'
    );
    expect(screen).toMatchObject({
      kind: 'list',
      experiments,
      notice: { action: 'retry' }
    });
    const clock = new Date(NOW).toTimeString().slice(0, 8);
    expect(screen).toHaveProperty(
      'notice.text',
      `Connection lost since ${clock}. The master does not answer. Look at its log. The list is as it was then.`
    );
    const bare = { ...LOST, remedy: '' };
    expect(
      screenOf(listView({ experiments, connection: bare }), '0.1.0')
    ).toHaveProperty(
      'notice.text',
      `Connection lost since ${clock}. The master does not answer. The list is as it was then.`
    );
  });

  it('offers to start a master that has gone', () => {
    const gone = status({ state: 'none', can_start: true });
    const view = listView({
      experiments: [experiment()],
      status: gone,
      connection: LOST
    });
    expect(screenOf(view, '0.1.0')).toMatchObject({
      notice: { action: 'start' }
    });
  });

  it('says what is missing where there is no server extension', () => {
    const connection = { ...LOST, state: 'absent', message: 'Not loaded.' };
    expect(
      screenOf(listView({ status: null, connection }), '0.1.0')
    ).toMatchObject({
      title: 'Not installed completely',
      body: 'Not loaded. Look at its log.',
      action: 'retry'
    });
  });

  it('shows the list without a notice while it is live', () => {
    const experiments = [experiment()];
    expect(screenOf(listView({ experiments }), '0.1.0')).toEqual({
      kind: 'list',
      experiments,
      others: '',
      notice: null,
      stale: false
    });
  });

  it('says below the list how many are not in it', () => {
    const view = listView({ experiments: [experiment()], others: 120 });
    expect(screenOf(view, '0.1.0')).toMatchObject({
      others: '120 older experiments are under “All experiments”.'
    });
  });

  it('has the slots in its header while it is live, and nothing there otherwise', () => {
    expect(headerText(listView(), { busy: 1, all: 2 })).toBe(
      'Master running · 1 of 2 slots busy'
    );
    const gpus = 'NVIDIA H100 (80.0 GB)';
    expect(headerText(listView(), { busy: 1, all: 2, gpus })).toBe(
      'Master running · 1 of 2 slots busy · NVIDIA H100 (80.0 GB)'
    );
    expect(headerText(listView(), null)).toBe('Master running');
    const idle = { busy: 0, all: 2 };
    const running = listView({ experiments: [experiment()] });
    expect(headerText(running, idle)).toBe('Master running');
    const waiting = listView({ experiments: [experiment({ started: null })] });
    expect(headerText(waiting, idle)).toBe(
      'Master running · 0 of 2 slots busy'
    );
    expect(
      headerText(listView({ connection: LOST }), { busy: 1, all: 2 })
    ).toBe('');
  });
});

describe('the active row', () => {
  it.each([
    ['ArrowDown', 3, 4],
    ['ArrowDown', 9, 9],
    ['ArrowUp', 0, 0],
    ['PageDown', 2, 6],
    ['PageUp', 2, 0],
    ['Home', 5, 0],
    ['End', 5, 9],
    ['a', 5, null]
  ])('goes by %s from row %i to %s', (key, row, target) => {
    expect(rowAfterKey(key, row, 10, 4)).toBe(target);
  });

  it('has nowhere to go when it is empty', () => {
    expect(rowAfterKey('End', 0, 0, 4)).toBeNull();
  });
});

describe('the slots', () => {
  function watch() {
    const transport = new ScriptedTransport({
      'master/master': { slots: [{ trial_id: 3 }, { trial_id: null }] }
    });
    return { asked: transport.requests, slots: new SlotsWatch(transport) };
  }

  it('are asked for when the list changes in what runs, and only while it is seen', async () => {
    const { asked, slots } = watch();
    const changed = new Promise<void>(resolve => (slots.onChange = resolve));
    slots.follow(listView({ experiments: [experiment()] }), false);
    expect(asked).toEqual([]);
    slots.follow(listView({ experiments: [experiment()] }), true);
    slots.follow(
      listView({ experiments: [experiment({ progress: 0.9 })] }),
      true
    );
    await changed;
    expect(asked).toEqual(['GET master/master']);
    expect(slots.found).toMatchObject({ busy: 1, all: 2 });
    slots.follow(listView({ connection: LOST }), true);
  });

  it('depend on states and trials, not on progress', () => {
    const key = (change: object) =>
      slotsKey(listView({ experiments: [experiment(change)] }));
    expect(key({ progress: 0.9 })).toBe(key({}));
    expect(key({ trials: 2 })).not.toBe(key({}));
    expect(key({ state: 'PAUSED' })).not.toBe(key({}));
  });
});

describe('an action', () => {
  it.each([
    ['ACTIVE', ['pause', 'stop', 'kill']],
    ['PAUSED', ['resume', 'stop', 'kill']],
    ['STOPPING_CANCELED', ['kill']],
    ['COMPLETED', []]
  ] as const)('fits %s', (state, expected) => {
    const actions = ['pause', 'resume', 'stop', 'kill'] as const;
    expect(
      actions.filter(action => fits(action, experiment({ state })))
    ).toEqual(expected);
  });
});

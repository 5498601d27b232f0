import { describe, expect, it } from 'vitest';

import type {
  Connection,
  ExperimentState,
  MasterState,
  TrialState
} from '../../src/shared/model';
import {
  connectionText,
  experimentStateText,
  masterText,
  TEXTS,
  trialStateText
} from '../../src/shared/texts';
import { experiment, statesOf, status, trial } from './examples';

describe('a trial that its search ended early', () => {
  it('is neither completed nor stopped by somebody', () => {
    const notice =
      'stopped early by the search, after 50 batches: others had come to more by then';
    expect(
      trialStateText({ state: 'COMPLETED', stopped_early: true, notice })
    ).toEqual({
      word: 'Stopped early',
      tone: 'neutral',
      note: 'after 50 batches'
    });
  });
});

describe('each state has its words', () => {
  it('of an experiment', () => {
    const words = statesOf('ExperimentState').map(state => {
      const { word, tone } = experimentStateText(
        experiment({ state: state as ExperimentState })
      );
      return [state, word, tone];
    });
    expect(words).toEqual([
      ['QUEUED', 'Queued', 'waiting'],
      ['ACTIVE', 'Running', 'active'],
      ['PAUSED', 'Paused', 'waiting'],
      ['STOPPING_CANCELED', 'Stopping', 'waiting'],
      ['STOPPING_COMPLETED', 'Finishing', 'active'],
      ['STOPPING_ERROR', 'Failing', 'bad'],
      ['CANCELED', 'Stopped', 'neutral'],
      ['COMPLETED', 'Completed', 'good'],
      ['ERROR', 'Failed', 'bad'],
      ['DELETED', 'Deleted', 'neutral']
    ]);
  });

  it('of an experiment that waits for slots', () => {
    const word = (state: ExperimentState) =>
      experimentStateText(experiment({ state, started: null })).word;
    expect(word('ACTIVE')).toBe('Queued');
    expect(word('PAUSED')).toBe('Paused');
    expect(word('ERROR')).toBe('Failed');
  });

  it('of an experiment that has no slot any more, and of its trials', () => {
    const waits = experiment({ waits_for: '2 of 4 slots: #7 has them' });
    const text = {
      word: 'Queued',
      tone: 'waiting',
      note: 'waits for 2 of 4 slots: #7 has them'
    };
    expect(experimentStateText(waits)).toEqual(text);
    expect(trialStateText({ state: 'QUEUED' }, waits)).toEqual(text);
    expect(trialStateText({ state: 'RUNNING' }, waits).word).toBe('Running');
  });

  it('of a search of which trials failed', () => {
    const text = (state: ExperimentState, failed_trials: number) =>
      experimentStateText(experiment({ state, trials: 8, failed_trials }));
    expect(text('COMPLETED', 2)).toEqual({
      word: 'Completed',
      tone: 'waiting',
      note: '2 of 8 trials failed'
    });
    expect(text('COMPLETED', 0).note).toBeUndefined();
    expect(text('ERROR', 8).note).toBeUndefined();
  });

  it('of what waits for room on a disk', () => {
    const notice = 'waits for disk space in /srv (checkpoint of batch 6)';
    const running = { word: 'Running', tone: 'active', note: notice };
    expect(experimentStateText(experiment({ notice }))).toEqual(running);
    expect(trialStateText(trial({ notice }))).toEqual(running);
    const paused = experiment({ state: 'PAUSED' });
    expect(
      trialStateText(trial({ state: 'QUEUED', notice }), paused)
    ).toMatchObject({ word: 'Paused', note: notice });
    expect(trialStateText(trial()).note).toBeUndefined();
  });

  it('of a trial', () => {
    const words = statesOf('TrialState').map(state => {
      const { word, tone } = trialStateText({ state: state as TrialState });
      return [state, word, tone];
    });
    expect(words).toEqual([
      ['QUEUED', 'Queued', 'waiting'],
      ['RUNNING', 'Running', 'active'],
      ['CANCELED', 'Stopped', 'neutral'],
      ['COMPLETED', 'Completed', 'good'],
      ['ERROR', 'Failed', 'bad']
    ]);
  });

  it('of a later master, whose states are not known here', () => {
    const state = 'DREAMING' as ExperimentState & TrialState;
    expect(experimentStateText(experiment({ state }))).toEqual({
      word: 'DREAMING',
      tone: 'neutral'
    });
    expect(trialStateText({ state })).toEqual({
      word: 'DREAMING',
      tone: 'neutral'
    });
  });

  it('of the master, with what is wrong and what to do', () => {
    const titles: Record<MasterState, string> = {
      running: 'Master running',
      none: 'No master is running',
      starting: 'The master is starting…',
      unauthorised: 'The master refuses access',
      mismatch: 'Versions do not match',
      unreachable: 'The master does not answer'
    };
    for (const [state, title] of Object.entries(titles)) {
      const found = masterText(
        status({ state: state as MasterState, message: 'What.', remedy: 'Do.' })
      );
      expect(found).toEqual({ title, body: 'What. Do.' });
    }
    expect(masterText(status({ message: 'What.', remedy: '' })).body).toBe(
      'What.'
    );
  });
});

describe('the connection', () => {
  const lost = (
    change: Partial<Extract<Connection, { kind: 'lost' }>>
  ): Connection => ({
    kind: 'lost',
    since: new Date(2026, 10, 20, 14, 3, 27).getTime(),
    state: 'unreachable',
    message: 'The master does not answer',
    remedy: 'Look at its log.',
    ...change
  });

  it.each([
    [{ kind: 'connecting' }, 'Connecting…'],
    [{ kind: 'live' }, ''],
    [{ kind: 'resting' }, ''],
    [{ kind: 'ended' }, '']
  ] as const)('%j says %j', (connection, words) => {
    expect(connectionText(connection)).toBe(words);
  });

  it('that is lost says since when, why, what to do and that it goes on', () => {
    const words =
      'Connection lost since 14:03:27. The master does not answer. Look at its log. Trying again…';
    expect(connectionText(lost({}))).toBe(words);
    expect(
      connectionText(lost({ message: 'The master does not answer.' }))
    ).toBe(words);
  });

  it('has no holes where nothing can be said', () => {
    expect(connectionText(lost({ remedy: '' }))).toBe(
      'Connection lost since 14:03:27. The master does not answer. Trying again…'
    );
  });

  it('that never was is not lost', () => {
    expect(connectionText(lost({ never: true }))).toBe(
      'No connection yet. The master does not answer. Look at its log. Trying again…'
    );
  });

  it('with the kernel does not promise to come back', () => {
    const text = connectionText(
      lost({ state: 'gone', message: TEXTS.kernelGone, remedy: 'Run.' })
    );
    expect(text).toBe(
      'Connection lost since 14:03:27. The kernel that showed this has ended. Run.'
    );
  });
});

it('no text is empty', () => {
  expect(Object.values(TEXTS).filter(text => text.trim() === '')).toEqual([]);
});

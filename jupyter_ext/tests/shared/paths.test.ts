import { describe, expect, it } from 'vitest';

import { addressOf } from '../../src/shared/api';
import {
  asExperimentId,
  eventsRoute,
  extensionPath,
  isLocalId,
  savedRoute,
  shortName
} from '../../src/shared/paths';
import {
  artifactAddress,
  checkpointFileAddress,
  ofExperiment,
  ofTrial
} from '../../src/shared/requests';

describe('paths', () => {
  it.each([
    [12, 'master/experiments/12/trials', 'master/trials/30/logs?last=5'],
    [
      'local-3',
      'local/experiments/3/trials',
      'local/experiments/3/trials/30/logs?last=5'
    ]
  ])(
    'lead to the master, or to the runs of this machine: %s',
    (id, experiment, trial) => {
      const path = '/api/v1/experiments/{experiment_id}/trials';
      const query = { last: 5 };
      const logs = '/api/v1/trials/{trial_id}/logs';
      expect(extensionPath(addressOf(path, ofExperiment(id)))).toBe(experiment);
      expect(
        extensionPath(addressOf(logs, { ...ofTrial(id, 30), query }))
      ).toBe(trial);
    }
  );

  it('lead to files, whatever these are called', () => {
    const address = checkpointFileAddress(12, 'ab', 'a b/{uuid}/$&?#.bin');
    expect(address).toBe(
      '/api/v1/checkpoints/ab/files/a%20b/%7Buuid%7D/%24%26%3F%23.bin'
    );
    expect(
      extensionPath(checkpointFileAddress('local-3', 'ab', 'a/b.bin'))
    ).toBe('local/experiments/3/checkpoints/ab/files/a/b.bin');
    expect(artifactAddress(12, 30, 'a/b c.csv')).toBe(
      '/api/v1/trials/30/artifacts/content?path=a%2Fb%20c.csv'
    );
  });

  it('lead to events, and to what a notebook keeps', () => {
    expect(extensionPath(eventsRoute(12))).toBe('master/events');
    expect(extensionPath(eventsRoute('local-3'))).toBe('local/events');
    expect(savedRoute(12, 0)).toBe('saved/experiments/12');
    expect(savedRoute(12, 30)).toBe('saved/trials/30');
    expect(savedRoute('local-3', 0)).toBe('saved/local/3');
    expect(savedRoute('local-3', 1)).toBe('saved/local/3/1');
  });

  it('name experiments', () => {
    expect([isLocalId('local-3'), isLocalId(3)]).toEqual([true, false]);
    expect([shortName('local-3'), shortName(3)]).toEqual(['local-3', '#3']);
  });

  it('are made of ids only', () => {
    const given = [4, 'local-4', 'local-x', 'local-4/..', '4', null, undefined];
    expect(given.map(asExperimentId).filter(id => id !== null)).toEqual([
      4,
      'local-4'
    ]);
  });
});

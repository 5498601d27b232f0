import { describe, expect, it } from 'vitest';

import { addressOf } from '../../src/shared/api';
import {
  asExperimentId,
  extensionPath,
  savedRoute
} from '../../src/shared/paths';
import {
  artifactAddress,
  checkpointFileAddress,
  ofTrial
} from '../../src/shared/requests';

describe('paths', () => {
  it('lead to the master', () => {
    const logs = '/api/v1/trials/{trial_id}/logs';
    const query = { last: 5 };
    expect(extensionPath(addressOf(logs, { ...ofTrial(30), query }))).toBe(
      'master/trials/30/logs?last=5'
    );
  });

  it('lead to files, whatever these are called', () => {
    const address = checkpointFileAddress('ab', 'a b/{uuid}/$&?#.bin');
    expect(address).toBe(
      '/api/v1/checkpoints/ab/files/a%20b/%7Buuid%7D/%24%26%3F%23.bin'
    );
    expect(artifactAddress(30, 'a/b c.csv')).toBe(
      '/api/v1/trials/30/artifacts/content?path=a%2Fb%20c.csv'
    );
  });

  it('lead to what a notebook keeps', () => {
    expect(savedRoute(12, 0)).toBe('saved/experiments/12');
    expect(savedRoute(12, 30)).toBe('saved/trials/30');
  });

  it('are made of numbers only, which runs of a version before did not have', () => {
    const given = [4, 'local-4', '4', 0, 4.5, null, undefined];
    expect(given.map(asExperimentId).filter(id => id !== null)).toEqual([4]);
  });
});

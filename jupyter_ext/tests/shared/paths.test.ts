import { describe, expect, it } from 'vitest';

import {
  asExperimentId,
  eventsPath,
  experimentPath,
  isLocalId,
  shortName,
  trialPath
} from '../../src/shared/paths';

describe('paths', () => {
  it('lead to the master, or to the runs of this machine', () => {
    expect(experimentPath(12)).toBe('master/experiments/12');
    expect(trialPath(12, 30)).toBe('master/trials/30');
    expect(eventsPath(12)).toBe('master/events');
    expect(experimentPath('local-3')).toBe('local/experiments/3');
    expect(trialPath('local-3', 1)).toBe('local/experiments/3/trials/1');
    expect(eventsPath('local-3')).toBe('local/events');
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

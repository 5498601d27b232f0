import { describe, expect, it } from 'vitest';

import { experimentOf } from '../../src/lab/page/address';

describe('an address', () => {
  it.each([
    ['?det-experiment=7', 7],
    ['?reset&det-experiment=local-3', 'local-3'],
    ['', null],
    ['?det-experiment=', null],
    ['?det-experiment=../7', null],
    ['?det-experiment=0', null]
  ])('%s asks for %s', (search, wanted) => {
    expect(experimentOf(search)).toBe(wanted);
  });
});

import { describe, expect, it } from 'vitest';

import { askedAddress, withoutAsked } from '../../src/lab/workspace/asked';

describe("JupyterLab's address", () => {
  it.each([
    ['?det-experiment=7', '/experiments/7'],
    ['?reset&det-experiment=local-3', null],
    [
      '?det=%2Fexperiments%2F7%2Fcharts%3Fx%3Depochs',
      '/experiments/7/charts?x=epochs'
    ],
    ['?det=/queue', '/queue'],
    ['', null],
    ['?det=https://evil.example', null],
    ['?det=/nowhere', null],
    ['?det-experiment=', null],
    ['?det-experiment=../7', null],
    ['?det-experiment=0', null]
  ])('%s asks for %s', (search, wanted) => {
    expect(askedAddress(search)).toBe(wanted);
  });

  it('is left without what it asked for, and with all else', () => {
    expect(
      withoutAsked(
        'http://x/user/lab/tree/a.ipynb?reset=1&det=%2Fqueue&det-experiment=7#cell'
      )
    ).toBe('http://x/user/lab/tree/a.ipynb?reset=1#cell');
  });
});

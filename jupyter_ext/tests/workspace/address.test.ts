import { describe, expect, it } from 'vitest';

import {
  addressText,
  experimentAddress,
  readAddress
} from '../../src/workspace/app/address';

describe('an address of the workspace', () => {
  it.each([
    ['', { page: 'experiments' }],
    ['/', { page: 'experiments' }],
    ['/experiments', { page: 'experiments' }],
    ['/experiments/7', { page: 'experiment', id: 7, tab: 'overview' }],
    ['/experiments/7/logs', { page: 'experiment', id: 7, tab: 'logs' }],
    ['/compare/7,8', { page: 'compare', ids: [7, 8] }],
    ['/models/a%2Fb', { page: 'model', name: 'a/b' }],
    ['/queue', { page: 'queue' }],
    ['/cluster', { page: 'cluster' }]
  ])('%s is a place, and the place has that address', (text, place) => {
    expect(readAddress(text).place).toEqual(place);
    expect(readAddress(addressText(readAddress(text).place)).place).toEqual(
      place
    );
  });

  it.each([
    '/experiments/0',
    '/experiments/x',
    '/experiments/7/nothing',
    '/experiments/7/logs/1',
    '/compare/',
    '/compare/7,x',
    '/compare/4,3,1/charts',
    '/models/a/b',
    '/queue/7',
    '/elsewhere'
  ])('%s leads nowhere', text => {
    expect(readAddress(text).place).toEqual({ page: 'unknown' });
  });

  it('keeps what a page remembers, without what is empty', () => {
    const query = 'label:baseline & 100%';
    const text = addressText({ page: 'experiments' }, { query, sort: '' });
    expect(readAddress(text)).toEqual({
      place: { page: 'experiments' },
      parameters: { query }
    });
    expect(experimentAddress(7)).toBe('/experiments/7');
  });
});

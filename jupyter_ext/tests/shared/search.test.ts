// @vitest-environment jsdom
import { describe, expect, it, vi } from 'vitest';

import type { Trial } from '../../src/shared/model';
import {
  axisOf,
  bestSoFar,
  differingNames,
  namedTrials,
  rungsOf
} from '../../src/shared/searchFacts';
import { TEXTS } from '../../src/shared/texts';
import { detail, trial, view } from './examples';
import { frame, shown } from './shownView';

const config = {
  searcher: { name: 'async_halving', max_length: { epochs: 9 } },
  hyperparameters: { rate: { type: 'log', base: 10, minval: -3, maxval: 0 } }
};

/** So many trials, each with its own rate and kind, ended one second after the other; smaller is better. */
function trials(count: number): Trial[] {
  return Array.from({ length: count }, (_, at) =>
    trial({
      id: at + 1,
      state: 'COMPLETED',
      hparams: {
        rate: 10 ** (-3 + (3 * at) / count),
        kind: at % 2 ? 'adam' : 'sgd',
        same: 1
      },
      best_validation: 1 + ((at * 7) % count),
      created: '2026-11-20T11:50:00Z',
      ended: new Date(Date.UTC(2026, 10, 20, 11, 50, at + 1)).toISOString(),
      stages: at % 3 === 0 ? [1, 3, 9] : at % 3 === 1 ? [1, 3] : [1]
    })
  );
}

const search = (count: number) => ({
  experiment: detail({ config, smaller_is_better: true, metric: 'error' }),
  trials: trials(count)
});

describe('the facts of a search', () => {
  it('are the best value by time', () => {
    const steps = bestSoFar(view(search(4)));
    expect(steps.map(({ value }) => value)).toEqual([1, 4, 3, 2]);
    expect(steps.map(({ best }) => best)).toEqual([1, 1, 1, 1]);
    expect(steps.map(({ seconds }) => seconds)).toEqual([1, 2, 3, 4]);
  });

  it('are the best value when it was there, of trials that run too', () => {
    const found: Trial[] = trials(2);
    found[0] = { ...found[0]!, best_at: '2026-11-20T11:50:00.250Z' };
    const running = trial({
      id: 9,
      state: 'RUNNING',
      best_validation: 0.5,
      best_at: '2026-11-20T11:50:03Z',
      ended: null
    });
    const steps = bestSoFar(
      view({ ...search(2), trials: [running, ...found] })
    );
    expect(steps.map(({ seconds }) => seconds)).toEqual([0.25, 2, 3]);
    expect(steps.map(({ best }) => best)).toEqual([1, 1, 0.5]);
  });

  it('are who was promoted and stopped at each rung', () => {
    const rungs = rungsOf(view(search(3)));
    expect(rungs).toEqual([
      { length: 9, promoted: [], finished: [1], stopped: [], training: [] },
      { length: 3, promoted: [1], finished: [], stopped: [2], training: [] },
      { length: 1, promoted: [1, 2], finished: [], stopped: [3], training: [] }
    ]);
    const failed = { ...search(1), trials: trials(2) };
    failed.trials[0] = { ...failed.trials[0]!, state: 'ERROR' };
    expect(rungsOf(view(failed))[0]).toMatchObject({
      finished: [],
      stopped: [1]
    });
    expect(rungsOf(view({ trials: [trial({ stages: [5] })] }))).toEqual([]);
    expect(rungsOf(view({ trials: [trial()] }))).toEqual([]);
    expect(namedTrials('stopped', [3])).toBe('stopped: trial 3');
    expect(namedTrials('stopped', [...Array(20).keys()])).toBe(
      'stopped: trials 0, 1, 2, 3, 4, 5, 6 and 13 others'
    );
  });

  it('are the hyperparameters that differ, and their places', () => {
    expect(differingNames(trials(3))).toEqual(['kind', 'rate']);
    const powers = axisOf('rate', [0.01, 0.1, 1], true);
    expect(powers.place(0.1)).toBeCloseTo(0.5);
    const words = axisOf('kind', ['sgd', 'adam']);
    expect(words.place('adam')).toBe(0);
    expect(words.place('other')).toBeNull();
    expect(axisOf('one', [2, 2]).place(2)).toBe(0.5);
  });
});

describe('a search', () => {
  it('of three trials is drawn with all its panels', async () => {
    const { root, text } = shown(search(3));
    await frame();
    expect(text('.det-search-panel > figcaption')).toBe(
      'Best so far|Rungs|kind|rate|All values'
    );
    expect(root.querySelectorAll('.det-search-line')).toHaveLength(3);
    expect(text('.det-rung-length')).toBe('9 epochs|3 epochs|1 epoch');
    expect(text('.det-rung-counts').split('|')[0]).toBe('1 finished');
    expect(text('.det-rung-who').split('|')[1]).toBe(
      'promoted: trial 1; stopped: trial 2'
    );
    expect(text('.det-search-told')).toBe(
      'Best: trial 1: error 1, kind=sgd, rate=0.001, same=1'
    );
    const second = root.querySelector('.det-search-line[data-trial="2"]');
    second?.dispatchEvent(new Event('pointerover', { bubbles: true }));
    expect(text('.det-search-told')).toContain('trial 2: error 2');
    expect(root.querySelectorAll('circle.det-marked')).toHaveLength(3);
    root
      .querySelector('.det-search-panels')
      ?.dispatchEvent(new Event('pointerleave'));
    expect(root.querySelectorAll('.det-marked')).toHaveLength(0);
  });

  it('names of equal trials the oldest as the best, as all else does', async () => {
    const equal = [1, 2, 3].map(id => trial({ id, best_validation: 0.5 }));
    for (const smaller_is_better of [true, false]) {
      const { text } = shown({
        experiment: detail({ config, smaller_is_better, metric: 'error' }),
        trials: equal
      });
      await frame();
      expect(text('.det-search-told')).toContain('Best: trial 1: error 0.5');
    }
  });

  it('of five hundred is drawn at most twice a second', async () => {
    const { root, show } = shown(search(500));
    await frame();
    expect(root.querySelectorAll('.det-search-line')).toHaveLength(500);
    const before = root.querySelector('.det-search-line');
    await show({ trials: trials(500).with(0, trial({ id: 1 })) });
    expect(root.querySelector('.det-search-line')).toBe(before);
    await vi.advanceTimersByTimeAsync(500);
    expect(root.querySelector('.det-search-line')).not.toBe(before);
  });

  it('says that there is no value yet, and is not there for a single trial', async () => {
    const { text, root, show } = shown({
      trials: [1, 2].map(id => trial({ id, best_validation: null }))
    });
    await frame();
    expect(text('.det-section .det-empty')).toContain(TEXTS.noSearchValues);
    await show({ trials: [trial()] });
    const section = root.querySelector('.det-search')?.closest('details');
    expect(section?.hidden).toBe(true);
  });
});

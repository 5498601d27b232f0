// @vitest-environment jsdom
import { observing, scrolled, setPageHidden } from './browserParts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { watchVisibility } from '../../src/shared/visibility';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function watched() {
  const element = document.createElement('div');
  const told: boolean[] = [];
  const end = watchVisibility(element, visible => told.push(visible));
  return { element, told, end };
}

describe('an element', () => {
  it('counts as seen at first, and as hidden only after a while', () => {
    const { element, told, end } = watched();
    scrolled(element, true);
    expect(told).toEqual([]);
    scrolled(element, false);
    vi.advanceTimersByTime(1499);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(told).toEqual([false]);
    scrolled(element, true);
    expect(told).toEqual([false, true]);
    end();
  });

  it('that is scrolled by, or moved in the page, was never hidden', () => {
    const { element, told, end } = watched();
    for (let time = 0; time < 10; time++) {
      scrolled(element, false);
      vi.advanceTimersByTime(1000);
      scrolled(element, false, true);
    }
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual([]);
    end();
  });

  it('is hidden with its page, and not seen again while it is out of view', () => {
    const { element, told, end } = watched();
    setPageHidden(true);
    vi.advanceTimersByTime(1500);
    expect(told).toEqual([false]);
    scrolled(element, false);
    setPageHidden(false);
    vi.advanceTimersByTime(1500);
    expect(told).toEqual([false]);
    scrolled(element, true);
    expect(told).toEqual([false, true]);
    end();
  });

  it('is told of no more after the end', () => {
    const { element, told, end } = watched();
    scrolled(element, false);
    end();
    setPageHidden(true);
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
    expect(observing.size).toBe(0);
  });
});

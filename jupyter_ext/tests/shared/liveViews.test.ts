import { describe, expect, it, vi } from 'vitest';

import { liveViews, LiveViews } from '../../src/shared/liveViews';

const place = {} as HTMLElement;

describe('a live view', () => {
  it('is told to who waits for it, whoever comes first, and that it goes', () => {
    const views = new LiveViews();
    const [early, late] = [vi.fn(), vi.fn()];
    views.watch('a', early);
    expect(early).not.toHaveBeenCalled();
    const attach = vi.fn(() => () => undefined);
    const withdraw = views.offer('a', attach);
    views.watch('a', late);
    expect([early.mock.calls, late.mock.calls]).toEqual([
      [[attach]],
      [[attach]]
    ]);
    withdraw();
    expect([early.mock.lastCall, late.mock.lastCall]).toEqual([[null], [null]]);
    const after = vi.fn();
    views.watch('a', after);
    expect(after).not.toHaveBeenCalled();
  });

  it('is told to those alone who watch that display', () => {
    const views = new LiveViews();
    const other = vi.fn();
    views.watch('b', other);
    views.offer('a', () => () => undefined);
    expect(other).not.toHaveBeenCalled();
  });

  it('that came anew is not taken away by the end of the old one', () => {
    const views = new LiveViews();
    const listener = vi.fn();
    const withdrawOld = views.offer('a', () => () => undefined);
    const attach = vi.fn(() => () => undefined);
    views.offer('a', attach);
    views.watch('a', listener);
    withdrawOld();
    expect(listener.mock.calls).toEqual([[attach]]);
  });

  it('is told no more to who has gone, and still to the others', () => {
    const views = new LiveViews();
    const [one, other, third] = [vi.fn(), vi.fn(), vi.fn()];
    const end = views.watch('a', one);
    views.watch('a', other);
    end();
    end();
    views.watch('a', third);
    views.offer('a', () => () => undefined);
    expect([one, other, third].map(each => each.mock.calls.length)).toEqual([
      0, 1, 1
    ]);
  });
});

it('what is to be kept of a display is told to its outputs alone', () => {
  const views = new LiveViews();
  const [shown, gone, other] = [vi.fn(), vi.fn(), vi.fn()];
  views.watch('a', () => undefined, shown);
  views.watch('a', () => undefined, gone)();
  views.watch('b', () => undefined, other);
  views.save('a', { 'text/plain': 'completed' });
  expect(shown.mock.calls).toEqual([[{ 'text/plain': 'completed' }]]);
  expect(gone).not.toHaveBeenCalled();
  expect(other).not.toHaveBeenCalled();
});

it('a page has one place for them, which two bundles share', () => {
  const page = {};
  expect(liveViews(page)).toBe(liveViews(page));
  expect(liveViews({})).not.toBe(liveViews(page));
  const found = vi.fn();
  liveViews(page).watch('a', attach => attach?.(place));
  liveViews(page).offer('a', where => {
    found(where);
    return () => undefined;
  });
  expect(found).toHaveBeenCalledWith(place);
});

// @vitest-environment jsdom
import { describe, expect, it, vi } from 'vitest';

import { logLine, trial } from './examples';
import { buttonOf } from './browserParts';
import { frame, shown } from './shownView';

const LINE = 20;
const SEARCH = {
  trials: [trial({ state: 'COMPLETED' }), trial({ id: 4 })]
};
const LOG = { trialId: 4, chosen: false, atBegin: false };

/** Lines `first` to `last`. */
const lines = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, at) =>
    logLine(`line ${first + at}`, first + at)
  );

/** Show a log in a box of five lines. */
function shownLog(change: Parameters<typeof shown>[0]) {
  const found = shown({ ...SEARCH, log: LOG, ...change });
  const log = found.root.querySelector<HTMLElement>('pre.det-log')!;
  const height = () => (log.textContent.split('\n').length - 1) * LINE;
  Object.defineProperty(log, 'scrollHeight', { get: height });
  Object.defineProperty(log, 'clientHeight', { value: 5 * LINE });
  const source = Object.assign(found.source, {
    chooseLog: vi.fn(() => Promise.resolve()),
    earlierLogs: vi.fn(() => Promise.resolve())
  });
  const select = found.root.querySelector<HTMLSelectElement>(
    'select[aria-label="Trial whose log is shown"]'
  )!;
  return { ...found, log, source, select };
}

const scroll = (log: HTMLElement, top: number) => {
  log.scrollTop = top;
  log.dispatchEvent(new Event('scroll'));
};

describe('the log', () => {
  it('goes along with its end only for who reads that', async () => {
    const { log, show } = shownLog({ logs: lines(1, 10) });
    scroll(log, 5 * LINE);
    await show({ logs: lines(1, 12) });
    expect(log.scrollTop).toBe(12 * LINE);
    scroll(log, 3 * LINE);
    await show({ logs: lines(1, 15) });
    expect(log.scrollTop).toBe(3 * LINE);
    expect(log.textContent).toContain('line 15\n');
  });

  it('keeps what is read in its place as earlier lines come before it and old ones go', async () => {
    const { log, show } = shownLog({ logs: lines(101, 120) });
    scroll(log, 3 * LINE);
    await show({ logs: lines(51, 122) });
    expect(log.scrollTop).toBe(53 * LINE);
    expect(log.textContent.startsWith('line 51\nline 52\n')).toBe(true);
    await show({ logs: lines(61, 123) });
    expect(log.scrollTop).toBe(43 * LINE);
    expect(log.textContent.startsWith('line 61\n')).toBe(true);
    expect(log.textContent.trim().split('\n')).toHaveLength(63);
  });

  it('asks for earlier lines at its top, once at a time, and by its button', async () => {
    const { log, source, root, show } = shownLog({ logs: lines(101, 120) });
    scroll(log, 10 * LINE);
    expect(source.earlierLogs).not.toHaveBeenCalled();
    scroll(log, LINE);
    scroll(log, 0);
    expect(source.earlierLogs).toHaveBeenCalledTimes(1);
    await frame();
    buttonOf(root, 'Earlier lines').click();
    expect(source.earlierLogs).toHaveBeenCalledTimes(2);
    await show({ log: { ...LOG, atBegin: true } });
    expect(() => buttonOf(root, 'Earlier lines')).toThrow();
    scroll(log, 0);
    expect(source.earlierLogs).toHaveBeenCalledTimes(2);
  });

  it('lets one choose the trial', async () => {
    const { select, source, show, text } = shownLog({
      logs: lines(1, 3)
    });
    const names = [...select.options].map(option => option.text);
    expect(names).toEqual([
      'Automatic: trial 4',
      'Trial 3: Completed',
      'Trial 4: Running'
    ]);
    expect(select.value).toBe('');
    select.value = '3';
    select.dispatchEvent(new Event('change'));
    expect(source.chooseLog).toHaveBeenLastCalledWith(3);
    await show({ logs: [], log: { trialId: 3, chosen: true, atBegin: true } });
    expect(select.value).toBe('3');
    expect(select.options[0]?.text).toBe('Automatic');
    expect(text('summary')).toContain('Log of trial 3');
    expect(text('pre.det-log')).toBe('');
    expect(text('.det-empty')).toContain('No output yet.');
    expect(select.closest('[hidden]')).toBeNull();
    const empty = select.closest('details')!.querySelector('.det-empty')!;
    const order = select.compareDocumentPosition(empty);
    expect(order & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    select.value = '';
    select.dispatchEvent(new Event('change'));
    expect(source.chooseLog).toHaveBeenLastCalledWith(null);
  });

  it('says why nothing more came', async () => {
    const { source, root, text } = shownLog({ logs: lines(1, 3) });
    source.earlierLogs.mockRejectedValueOnce(new Error('The master is away.'));
    buttonOf(root, 'Earlier lines').click();
    await frame();
    expect(text('.det-log-tools [role=status]')).toBe('The master is away.');
    buttonOf(root, 'Earlier lines').click();
    await frame();
    expect(text('.det-log-tools [role=status]')).toBe('');
  });

  it('offers nothing of this where only the last lines are told', () => {
    const { select, root, text } = shownLog({ log: null, logs: lines(1, 3) });
    expect(select.hidden).toBe(true);
    expect(() => buttonOf(root, 'Earlier lines')).toThrow();
    expect(text('summary')).toContain('Log of trial 4, last lines');
  });
});

describe('the log of a highlighted trial', () => {
  const choices = (source: { chooseLog: ReturnType<typeof vi.fn> }) =>
    source.chooseLog.mock.calls.map(([id]: unknown[]) => id);
  const point = async (root: HTMLElement, id: number | null) => {
    const body = root.querySelector('[aria-label=Trials] tbody')!;
    const row = id === null ? null : body.querySelector(`[data-key="${id}"]`);
    (row ?? body).dispatchEvent(
      new MouseEvent(row ? 'pointerover' : 'pointerleave', { bubbles: !!row })
    );
    await vi.advanceTimersByTimeAsync(400);
  };

  it('is shown as long as it is, and then the one from before', async () => {
    const { root, source, show } = shownLog({ logs: lines(1, 3) });
    await point(root, 3);
    expect(choices(source)).toEqual([3]);
    await show({ log: { ...LOG, trialId: 3, chosen: true } });
    expect(root.textContent).toContain('Log of trial 3');
    await point(root, null);
    expect(choices(source)).toEqual([3, null]);
  });

  it('gives way to that which was chosen', async () => {
    const { root, source } = shownLog({
      logs: lines(1, 3),
      log: { ...LOG, chosen: true }
    });
    await point(root, 3);
    await point(root, null);
    expect(choices(source)).toEqual([3, 4]);
  });

  it('is not loaded for a pointer that passes by', async () => {
    const { root, source } = shownLog({ logs: lines(1, 3) });
    const row = root.querySelector('[aria-label=Trials] [data-key="3"]')!;
    row.dispatchEvent(new MouseEvent('pointerover', { bubbles: true }));
    await vi.advanceTimersByTimeAsync(100);
    await point(root, null);
    expect(choices(source)).toEqual([]);
  });

  it('stays while its row is held', async () => {
    const { root, source } = shownLog({ logs: lines(1, 3) });
    const row = root.querySelector('[aria-label=Trials] [data-key="3"]')!;
    await point(root, 3);
    row.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    await point(root, null);
    expect(choices(source)).toEqual([3]);
  });
});

// @vitest-environment jsdom
import {
  nameOf,
  observing,
  setPageHidden,
  textsOf
} from '../shared/browserParts';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ExperimentsPanel } from '../../src/lab/panel/panel';
import { SlotsWatch } from '../../src/lab/panel/slots';
import { AllExperiments } from '../../src/shared/allExperiments';
import { AWAY, ScriptedTransport } from '../shared/scriptedTransport';
import { experiment, status } from './facts';

const LIST = 'master/experiments';
const widgets: Widget[] = [];
const feeds: AllExperiments[] = [];

beforeEach(() => vi.useFakeTimers());
afterEach(async () => {
  widgets.splice(0).forEach(widget => widget.dispose());
  feeds.splice(0).forEach(feed => feed.dispose());
  await vi.advanceTimersByTimeAsync(20);
  expect(vi.getTimerCount()).toBe(0);
  expect(observing.size).toBe(0);
  vi.useRealTimers();
});

const frame = () => vi.advanceTimersByTimeAsync(20);

/** Show a panel in a page. */
async function panelWith(answers: Record<string, unknown> = {}) {
  const transport = new ScriptedTransport({
    status: status(),
    [LIST]: [experiment({ id: 8 }), experiment()],
    'local/experiments': [],
    'master/master': { slots: [{ trial_id: 3 }, {}] },
    ...answers
  });
  const feed = new AllExperiments(transport);
  const calls = {
    onOpen: vi.fn(),
    onAll: vi.fn(),
    onSubmit: vi.fn(),
    onStart: vi.fn(() => feed.start())
  };
  const canSubmit = vi.fn(() => true);
  const panel = new ExperimentsPanel({
    feed,
    slots: new SlotsWatch(transport),
    version: '0.1.0',
    canSubmit,
    ...calls
  });
  widgets.push(panel);
  feeds.push(feed);
  Widget.attach(panel, document.body);
  await frame();
  await frame();
  const texts = (selector: string) => textsOf(panel.node, selector);
  return { transport, panel, calls, canSubmit, texts, node: panel.node };
}

describe('the panel', () => {
  it('lists the experiments, with the master above', async () => {
    const { panel, texts, node, calls } = await panelWith();
    await vi.advanceTimersByTimeAsync(4100);
    expect(texts('.det-Panel-master')).toEqual([
      'Master running · 1 of 2 slots busy'
    ]);
    expect(panel.activeExperiment?.id).toBe(8);
    expect(nameOf(node)).toBe('Experiments of det_native');
    const buttons = node.querySelectorAll<HTMLButtonElement>(
      '.det-Panel-header button'
    );
    expect([...buttons].map(nameOf)).toEqual([
      'Open the table of all experiments',
      'Refresh the list of experiments'
    ]);
    buttons[0]?.click();
    expect(calls.onAll).toHaveBeenCalledTimes(1);
  });

  it('causes no request while it is hidden, or its tab is', async () => {
    const { transport, panel } = await panelWith();
    const ways = [
      [() => panel.hide(), () => panel.show()],
      [() => setPageHidden(true), () => setPageHidden(false)]
    ] as const;
    for (const [hide, show] of ways) {
      hide();
      transport.forget();
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect(transport.requests).toEqual([]);
      expect(transport.newestOf('master/events').over).toBe(true);
      show();
      await frame();
      expect(transport.requests).toContain(`GET ${LIST}?limit=500`);
    }
  });

  it('asks for no slots in a hidden tab, which draws nothing', async () => {
    const { transport } = await panelWith();
    vi.spyOn(window, 'requestAnimationFrame').mockReturnValue(1);
    setPageHidden(true);
    transport.forget();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
  });

  it('starts a master on demand', async () => {
    const none = status({
      state: 'none',
      can_start: true,
      message: 'None.',
      remedy: 'Start it.'
    });
    const { transport, node, texts } = await panelWith({
      status: none,
      start: status()
    });
    expect(texts('h3')).toEqual(['No master is running']);
    const [start] = node.querySelectorAll<HTMLButtonElement>(
      '.det-Panel-message button'
    );
    transport.answers.set('status', status());
    start!.click();
    await frame();
    await frame();
    expect(transport.requests).toContain('POST start');
    expect(texts('.det-Panel-message')).toEqual([]);
    expect(texts('.det-Panel-master')).not.toEqual([]);
  });

  it('offers to submit a notebook where there is one and nothing else to show', async () => {
    const { node, canSubmit, calls, panel } = await panelWith({ [LIST]: [] });
    node.querySelector<HTMLButtonElement>('.det-Panel-message button')?.click();
    expect(calls.onSubmit).toHaveBeenCalledTimes(1);
    canSubmit.mockReturnValue(false);
    panel.hide();
    panel.show();
    await frame();
    await frame();
    expect(node.querySelector('.det-Panel-message button')).toBeNull();
  });

  it('keeps its list when the master goes, says so, and tries again on demand', async () => {
    const { transport, node, panel, texts } = await panelWith();
    transport.answers.set('status', AWAY);
    transport.newestOf('master/events').break();
    await frame();
    await frame();
    expect(texts('.det-Panel-notice p')[0]).toContain('Connection lost since');
    expect(panel.activeExperiment?.id).toBe(8);
    const [retry] = node.querySelectorAll<HTMLButtonElement>(
      '.det-Panel-notice button'
    );
    transport.answers.set('status', status());
    retry!.click();
    await frame();
    await frame();
    expect(texts('.det-Panel-notice')).toEqual([]);
  });

  it('leaves a button that has the focus alone while nothing changes', async () => {
    const none = status({ state: 'none', can_start: true });
    const { node, panel } = await panelWith({ status: none });
    panel.activate();
    await frame();
    const start = node.querySelector('.det-Panel-message button');
    expect(document.activeElement).toBe(start);
    await vi.advanceTimersByTimeAsync(65_000);
    expect(document.activeElement).toBe(start);
  });

  it('ends with its stream, timers and observers', async () => {
    const { transport, panel } = await panelWith();
    panel.dispose();
    transport.forget();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toEqual([]);
    expect(transport.newestOf('master/events').over).toBe(true);
  });
});

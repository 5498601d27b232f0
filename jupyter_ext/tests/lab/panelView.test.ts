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
import { RunsWatch } from '../../src/lab/panel/runsWatch';
import { SlotsWatch } from '../../src/lab/panel/slots';
import { ExperimentListFeed } from '../../src/shared/listFeed';
import { AWAY, ScriptedTransport } from '../shared/scriptedTransport';
import { experiment, notebookRun, NOW, status } from './facts';

const LIST = 'master/experiments';
const widgets: Widget[] = [];
const feeds: ExperimentListFeed[] = [];

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
    'notebook-runs': [],
    'master/master': { slots: [{ trial_id: 3 }, {}] },
    ...answers
  });
  const feed = new ExperimentListFeed(transport);
  const calls = {
    onOpenAll: vi.fn(),
    onOpen: vi.fn(),
    onOpenRun: vi.fn(),
    onStopRun: vi.fn(),
    onSubmit: vi.fn(),
    onStart: vi.fn(() => feed.start())
  };
  const canSubmit = vi.fn(() => true);
  const panel = new ExperimentsPanel({
    feed,
    slots: new SlotsWatch(transport),
    runs: new RunsWatch(transport),
    onRun: { onOpen: calls.onOpenRun, onStop: calls.onStopRun },
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
    expect(nameOf(node.querySelector('.det-Panel-refresh')!)).toBe(
      'Refresh the list of experiments'
    );
    node.querySelector<HTMLButtonElement>('.det-Panel-all')!.click();
    expect(calls.onOpenAll).toHaveBeenCalledTimes(1);
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

describe('the runs of notebooks', () => {
  const shown = async (...runs: unknown[]) => {
    vi.setSystemTime(NOW);
    return panelWith({ 'notebook-runs': runs });
  };

  it('stand above the experiments, with what can be done', async () => {
    const run = notebookRun({ experiments: ['7', 'local-1'] });
    const { node, texts, calls } = await shown(run);
    expect(texts('.det-Run .det-Row-name')).toEqual(['train.ipynb']);
    expect(texts('.det-Run-state')).toEqual(['Running · cell 5 of 12']);
    expect(texts('.det-Run-experiments button')).toEqual(['#7']);
    const press = (name: string) =>
      [...node.querySelectorAll<HTMLButtonElement>('.det-Run button')]
        .find(each => nameOf(each) === name)!
        .click();
    press('#7');
    expect(calls.onOpen).toHaveBeenCalledWith(7);
    press('Stop run 3 of train.ipynb');
    expect(calls.onStopRun).toHaveBeenCalledWith(run);
    press('Open the executed notebook of run 3 of train.ipynb');
    expect(calls.onOpenRun).toHaveBeenCalledWith(run);
  });

  it('are asked for while one goes on and the panel is seen', async () => {
    const { transport, texts, node } = await shown(notebookRun());
    const asked = () =>
      transport.requests.filter(each => each === 'GET notebook-runs').length;
    const before = asked();
    const button = node.querySelector('.det-Run-experiments button');
    transport.answers.set('notebook-runs', [notebookRun({ cell: 6 })]);
    await vi.advanceTimersByTimeAsync(2020);
    expect(asked()).toBe(before + 1);
    expect(texts('.det-Run-state')).toEqual(['Running · cell 6 of 12']);
    expect(node.querySelector('.det-Run-experiments button')).toBe(button);
    setPageHidden(true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked()).toBe(before + 1);
    const error = 'Cell 6 of 12 raised ValueError: <b>no</b>';
    const ended = { state: 'FAILED', ended: NOW / 1000, error } as const;
    transport.answers.set('notebook-runs', [notebookRun(ended)]);
    setPageHidden(false);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked()).toBe(before + 2); // once, and not again: it has ended
    expect(texts('.det-Run-problem')).toEqual([error]);
    expect(node.querySelector('.det-Run b')).toBeNull();
  });

  it('that ended long ago are left out, and none takes no room', async () => {
    const old = notebookRun({ state: 'COMPLETED', ended: NOW / 1000 - 7200 });
    const { node } = await shown(old);
    expect(node.querySelector<HTMLElement>('.det-Runs')!.hidden).toBe(true);
  });
});

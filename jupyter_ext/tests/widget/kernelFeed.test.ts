import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { ExperimentView } from '../../src/shared/model';
import { TEXTS } from '../../src/shared/texts';
import { KernelFeed } from '../../src/widget/kernelFeed';
import { curve, detail, logLine, medium, NOW, trial } from '../shared/examples';
import { FakeSource } from '../shared/fakeSource';
import { FakeModel } from './fakeModel';

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
});
afterEach(() => vi.useRealTimers());

const REPLAY = { type: 'replay' };

function followed(change = {}) {
  const model = new FakeModel(change);
  const feed = new KernelFeed(model.any);
  const views: ExperimentView[] = [];
  feed.subscribe(view => views.push(view));
  return { model, feed, views };
}

const noContent = () => Promise.reject(new Error('no server'));

function begun() {
  const found = followed();
  const parts = { experiment: detail(), trials: [trial()], curves: [curve()] };
  found.model.change(parts);
  found.model.sent.length = 0;
  return found;
}

describe('a view that the kernel feeds', () => {
  it('is of what the widget says, and asks for everything first', () => {
    const { model, feed, views } = followed({
      experiment_id: 0,
      trial_id: 2
    });
    expect(model.sent).toEqual([REPLAY]);
    expect(feed.view).toMatchObject({
      id: 0,
      trialId: 2,
      experiment: null
    });
    expect(views).toEqual([feed.view]);
    expect(feed.view.connection.kind).toBe('connecting');
  });

  it('takes over the parts that come, and keeps the others', () => {
    const { model, feed, views } = begun();
    expect(feed.view).toMatchObject({
      connection: { kind: 'live' },
      curves: [curve()]
    });
    model.change({ logs: [logLine('one')] });
    expect(feed.view.logs).toEqual([logLine('one')]);
    expect(feed.view.experiment).toEqual(detail());
    expect(model.sent).toEqual([]);
    expect(views).toHaveLength(3);
  });

  it('has all that was told before it listened', () => {
    const experiment = detail();
    const { feed } = followed({ experiment, logs: [logLine('one')] });
    expect(feed.view).toMatchObject({
      connection: { kind: 'live' },
      experiment,
      logs: [logLine('one')]
    });
  });

  it('ends with its experiment', () => {
    const { model, feed } = begun();
    const experiment = detail({ state: 'COMPLETED' });
    model.change({ experiment });
    expect(feed.view.connection).toEqual({ kind: 'ended' });
    model.trigger('comm:close');
    expect(feed.view.connection).toEqual({ kind: 'ended' });
  });

  it('asks again on demand', () => {
    const { model, feed } = begun();
    feed.retry();
    expect(model.sent).toEqual([REPLAY]);
  });

  it('costs no message when it is hidden', () => {
    const { model, feed } = begun();
    feed.pause();
    feed.resume();
    expect(model.sent).toEqual([]);
    expect(feed.view.connection.kind).toBe('live');
  });
});

describe('a loss', () => {
  it('of the master is told with the words of the kernel, since the first of them', () => {
    const { model, feed } = begun();
    model.change({ lost: 'No master at http://x.' });
    const lost = {
      kind: 'lost',
      since: NOW,
      state: 'unreachable',
      message: 'No master at http://x.',
      remedy: ''
    };
    expect(feed.view.connection).toEqual(lost);
    vi.advanceTimersByTime(5000);
    model.change({ lost: 'Still none.' });
    expect(feed.view.connection).toEqual({ ...lost, message: 'Still none.' });
    expect(feed.view.curves).toEqual([curve()]);
    model.change({ lost: '' });
    expect(feed.view.connection.kind).toBe('live');
    model.change({ lost: 'Away.' });
    expect(feed.view.connection).toEqual({
      ...lost,
      since: NOW + 5000,
      message: 'Away.'
    });
  });

  it.each(['comm_live_update', 'comm:close'])(
    'of the kernel is told at %s',
    event => {
      const { model, feed } = begun();
      model.dead = true;
      model.trigger(event);
      expect(feed.view.connection).toMatchObject({
        kind: 'lost',
        state: 'gone',
        message: TEXTS.kernelGone,
        remedy: 'Run det.attach(7) to follow it again.'
      });
    }
  );

  it('of the kernel of a run that is not recorded says that only its cell brings it back', () => {
    const { model, feed } = followed({ experiment_id: 0 });
    model.trigger('comm:close');
    expect(feed.view.connection).toHaveProperty(
      'remedy',
      'Run its cell again.'
    );
  });

  it('of the kernel for a moment is over when it answers', () => {
    const { model, feed } = begun();
    model.trigger('comm_live_update');
    expect(model.sent).toEqual([REPLAY]);
    model.change({});
    expect(feed.view.connection.kind).toBe('live');
  });
});

describe('the kernel of its own run that has gone', () => {
  const created = '2026-01-01T00:00:00Z';
  const run = (change = {}) => detail({ created, ...change });

  function gone() {
    const model = new FakeModel({
      experiment_id: 7,
      experiment: run(),
      curves: [curve()]
    });
    const other = new FakeSource();
    const dispose = vi.spyOn(other, 'dispose');
    const follow = vi.fn(() => other);
    const interrupt = () => Promise.resolve(true);
    const feed = new KernelFeed(model.any, {
      interrupt,
      follow,
      content: noContent
    });
    model.trigger('comm_live_update');
    model.trigger('comm:close');
    return { model, other, dispose, follow, feed };
  }

  it('leaves it to the server to say how the run has ended', () => {
    const { other, follow, feed } = gone();
    expect(follow).toHaveBeenCalledTimes(1);
    expect(feed.view.connection.kind).toBe('lost');
    other.show({ connection: { kind: 'missing' } });
    expect(feed.view.connection.kind).toBe('lost');
    const experiment = run({ state: 'CANCELED' });
    const trials = [trial({ state: 'CANCELED', batches: 16 })];
    other.show({ connection: { kind: 'ended' }, experiment, trials });
    expect(feed.view).toMatchObject({
      connection: { kind: 'ended' },
      experiment,
      trials
    });
  });

  it('says nothing of another run that has its number now', () => {
    const { other, feed } = gone();
    other.show({ experiment: run({ created: '2026-02-02T00:00:00Z' }) });
    expect(feed.view.connection.kind).toBe('lost');
  });

  it('tells again by itself if it was gone for a moment only', () => {
    const { model, feed } = gone();
    model.change({});
    expect(feed.view.connection.kind).toBe('live');
  });

  it('is not brought back by what it has told before and what comes late', () => {
    const { model, other, dispose, feed } = gone();
    model.change({});
    const experiment = run({ state: 'CANCELED' });
    other.show({ connection: { kind: 'ended' }, experiment });
    expect(feed.view.experiment?.state).toBe('CANCELED');
    model.change({});
    expect(feed.view.experiment?.state).toBe('CANCELED');
    feed.dispose();
    expect(dispose).toHaveBeenCalledTimes(1);
  });
});

describe('the kernel of its own run that tells nothing', () => {
  const created = '2026-01-01T00:00:00Z';
  const run = (change = {}) => detail({ created, ...change });
  const ended = {
    connection: { kind: 'ended' as const },
    experiment: run({ state: 'CANCELED' })
  };

  function quiet(experiment = run()) {
    const model = new FakeModel({ experiment_id: 7, experiment });
    const other = new FakeSource();
    const dispose = vi.spyOn(other, 'dispose');
    const follow = vi.fn(() => other);
    const interrupt = () => Promise.resolve(true);
    const feed = new KernelFeed(model.any, {
      interrupt,
      follow,
      content: noContent
    });
    return { model, other, dispose, follow, feed };
  }

  it('may have been killed: the server is asked whether the run has ended', () => {
    const { model, other, follow, feed } = quiet();
    vi.advanceTimersByTime(3000);
    model.change({});
    vi.advanceTimersByTime(3000);
    expect(follow).not.toHaveBeenCalled();
    vi.advanceTimersByTime(3000);
    expect(follow).toHaveBeenCalledTimes(1);
    other.show({ connection: { kind: 'live' }, experiment: run() });
    expect(feed.view.connection.kind).toBe('live');
    other.show(ended);
    expect(feed.view).toMatchObject(ended);
    model.change({});
    expect(feed.view).toMatchObject(ended);
  });

  it('tells again by itself when it was busy, and the server is left', () => {
    const { model, other, dispose, follow, feed } = quiet();
    vi.advanceTimersByTime(6000);
    other.show({ connection: { kind: 'missing' } });
    other.show({ experiment: run({ state: 'PAUSED' }) });
    expect(feed.view.experiment?.state).toBe(run().state);
    model.change({ logs: [logLine('one')] });
    expect(dispose).toHaveBeenCalledTimes(1);
    expect(feed.view.logs).toEqual([logLine('one')]);
    vi.advanceTimersByTime(6000);
    expect(follow).toHaveBeenCalledTimes(2);
    model.trigger('comm:close');
    expect(dispose).toHaveBeenCalledTimes(2);
    expect(follow).toHaveBeenCalledTimes(3);
  });

  it('is asked after no more once its run has ended, or nobody looks', () => {
    const { model, follow } = quiet();
    model.change({ experiment: run({ state: 'COMPLETED' }) });
    quiet().feed.dispose();
    vi.advanceTimersByTime(60_000);
    expect(follow).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('an action', () => {
  it('is asked of the kernel, and done when it says so', async () => {
    const { model, feed } = begun();
    const [pause, kill] = [feed.act('pause'), feed.act('kill')];
    expect(model.sent).toEqual([
      { type: 'act', id: 1, action: 'pause' },
      { type: 'act', id: 2, action: 'kill' }
    ]);
    model.tell({ type: 'answer', id: 2, error: 'It has ended.' });
    model.tell({ type: 'answer', id: 1 });
    await expect(pause).resolves.toBeUndefined();
    await expect(kill).rejects.toThrow('It has ended.');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('that a busy kernel does not answer says so, and its late answer is no surprise', async () => {
    const { model, feed } = begun();
    const outcome = expect(feed.act('pause')).rejects.toThrow(TEXTS.kernelBusy);
    await vi.advanceTimersByTimeAsync(4000);
    await outcome;
    model.tell({ type: 'answer', id: 1 });
    model.tell({ type: 'answer', id: 99 });
    model.tell({ type: 'answer' });
    expect(feed.view.connection.kind).toBe('live');
  });

  it('that stops a run of the kernel interrupts it', async () => {
    const model = new FakeModel({ experiment_id: 7 });
    const interrupt = vi.fn(() => Promise.resolve(true));
    const feed = new KernelFeed(model.any, {
      interrupt,
      follow: () => null,
      content: noContent
    });
    model.sent.length = 0;
    await feed.act('stop');
    expect(interrupt).toHaveBeenCalledTimes(1);
    expect(model.sent).toEqual([]);
    interrupt.mockResolvedValue(false);
    const asked = feed.act('stop');
    await vi.waitFor(() => expect(model.sent).toHaveLength(1));
    model.tell({ type: 'answer', id: 1 });
    await expect(asked).resolves.toBeUndefined();
  });

  it('with no kernel is refused at once', async () => {
    const { model, feed } = begun();
    model.dead = true;
    await expect(feed.act('pause')).rejects.toThrow(TEXTS.kernelGone);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('a feed that is disposed leaves no handler, no listener and no timer', async () => {
  const { model, feed, views } = begun();
  const told = views.length;
  const outcome = expect(feed.act('pause')).rejects.toThrow(TEXTS.viewGone);
  feed.dispose();
  await outcome;
  expect(model.handlers).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  model.change({});
  expect(views).toHaveLength(told);
});

it('who ends listening hears nothing more', () => {
  const { model, feed } = begun();
  const listener = vi.fn();
  const end = feed.subscribe(listener);
  end();
  model.change({});
  expect(listener).toHaveBeenCalledTimes(1);
});

describe('what a trial has logged', () => {
  it('comes from the kernel, with its bytes', async () => {
    const { model, feed } = begun();
    const asked = feed.content(medium({ id: 5 }));
    expect(model.sent).toEqual([
      { type: 'content', id: 1, trial_id: 3, medium_id: 5 }
    ]);
    const bytes = new Uint8Array([1, 2, 3]);
    model.tell({ type: 'answer', id: 1 }, new DataView(bytes.buffer));
    const blob = await asked;
    expect(new Uint8Array(await blob.arrayBuffer())).toEqual(bytes);
  });

  it('comes from the server for a run of the kernel, which may be busy', async () => {
    const model = new FakeModel({ experiment_id: 7 });
    const content = vi.fn(() => Promise.resolve(new Blob(['abc'])));
    const interrupt = () => Promise.resolve(true);
    const away = { interrupt, follow: () => null, content };
    const feed = new KernelFeed(model.any, away);
    model.sent.length = 0;
    expect(await (await feed.content(medium())).text()).toBe('abc');
    expect(model.sent).toEqual([]);
    content.mockReturnValue(Promise.reject(new Error('no extension')));
    const asked = feed.content(medium({ id: 6 }));
    await vi.advanceTimersByTimeAsync(0);
    expect(model.sent).toMatchObject([{ type: 'content', medium_id: 6 }]);
    model.tell({ type: 'answer', id: 1, error: 'It is not there any more.' });
    await expect(asked).rejects.toThrow('It is not there any more.');
  });

  it('is of the trial that is chosen', async () => {
    const { model, feed } = begun();
    const asked = feed.chooseOutputs(4);
    expect(model.sent).toEqual([{ type: 'outputs', id: 1, trial_id: 4 }]);
    model.tell({ type: 'answer', id: 1 });
    await asked;
    const outputs = { trialId: 4, chosen: true, media: [medium()], files: [] };
    model.change({ outputs });
    expect(feed.view.outputs).toEqual(outputs);
  });
});

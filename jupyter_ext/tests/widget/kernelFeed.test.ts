import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { ExperimentView } from '../../src/shared/model';
import { TEXTS } from '../../src/shared/texts';
import { KernelFeed } from '../../src/widget/kernelFeed';
import { curve, detail, logLine, medium, NOW, trial } from '../shared/examples';
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
      experiment_id: 8,
      trial_id: 2
    });
    expect(model.sent).toEqual([REPLAY]);
    expect(feed.view).toMatchObject({
      id: 8,
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

  it('of the kernel for a moment is over when it answers', () => {
    const { model, feed } = begun();
    model.trigger('comm_live_update');
    expect(model.sent).toEqual([REPLAY]);
    model.change({});
    expect(feed.view.connection.kind).toBe('live');
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

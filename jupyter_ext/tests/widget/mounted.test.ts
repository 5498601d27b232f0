// @vitest-environment jsdom
import { ReadableStream } from 'node:stream/web'; // jsdom has none
import {
  buttonOf,
  observing,
  scrolled,
  setPageHidden,
  textsOf
} from '../shared/browserParts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { liveViews } from '../../src/shared/liveViews';
import { TEXTS } from '../../src/shared/texts';
import widget from '../../src/widget/index';
import { Mounted } from '../../src/widget/mounted';
import {
  checkpoint,
  curve,
  detail,
  NASTY,
  status,
  trial
} from '../shared/examples';
import { FakeModel } from './fakeModel';

const MASTER = 'http://127.0.0.1:8080';
const MASTER_STATUS = status({
  master: { url: MASTER, version: '0.1.0', protocol: 1 }
});

/** The Jupyter server of the page: its answers by path, what was asked of it, and how many streams are open. */
const server = {
  answers: {} as Record<string, unknown>,
  asked: [] as string[],
  streams: 0,
  headers: [] as unknown[]
};

function answerOf(url: string, init: RequestInit): Promise<Response> {
  const path = url.replace(/^.*det-native\/api\//, '').replace(/\?.*/, '');
  server.asked.push(path);
  server.headers.push(init.headers);
  if (path.endsWith('/events')) {
    server.streams += 1;
    init.signal?.addEventListener('abort', () => (server.streams -= 1), {
      once: true
    });
    const body = new ReadableStream({
      start: controller =>
        init.signal?.addEventListener('abort', () =>
          controller.error(new Error('aborted'))
        )
    });
    return Promise.resolve(new Response(body as BodyInit));
  }
  const answer = server.answers[path];
  return answer === undefined
    ? Promise.reject(new TypeError('Failed to fetch'))
    : Promise.resolve(new Response(JSON.stringify(answer)));
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('fetch', answerOf);
  Object.assign(server, { asked: [], streams: 0, headers: [] });
  server.answers = {
    status: MASTER_STATUS,
    'master/experiments/7': detail(),
    'master/experiments/7/trials': [trial()],
    'master/experiments/7/checkpoints': [checkpoint()],
    'master/experiments/7/curves': [curve()],
    'master/trials/3/logs': [],
    'master/trials/3/system': [],
    'master/trials/3/media': [],
    'master/trials/3/artifacts': []
  };
  document.body.dataset.baseUrl = '/lab/';
});
afterEach(async () => {
  // Whatever is still shown ends with its grace; then nothing may be left.
  await vi.advanceTimersByTimeAsync(10_000);
  expect(observing.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  expect(server.streams).toBe(0);
  vi.useRealTimers();
  document.body.replaceChildren();
});

const frame = () => vi.advanceTimersByTimeAsync(20);

function place(): HTMLElement {
  const element = document.createElement('div');
  document.body.append(element);
  return element;
}

const served = (change = {}) =>
  new FakeModel({ master_url: MASTER, ...change });

async function mounted(model: FakeModel) {
  const view = new Mounted(model.any);
  const where = place();
  const detach = view.attach(where);
  await frame();
  return {
    view,
    where,
    detach,
    title: () => textsOf(where, '.det-title').join()
  };
}

describe('the data of a view', () => {
  it('come from the Jupyter server if it knows the same master, and the kernel is told', async () => {
    const model = served();
    const { where, detach } = await mounted(model);
    expect(model.sent).toEqual([{ type: 'served' }]);
    expect(textsOf(where, '.det-name')).toEqual(['digits']);
    expect(server.streams).toBe(1);
    detach();
  });

  it.each([
    ['http://localhost:8080/', true],
    ['http://[::1]:8080', true],
    ['http://127.0.0.1:8080//', true],
    ['http://127.0.0.1:9090', false],
    ['http://localhost.example:8080', false]
  ])('come from the server for %s: %s', async (url, expected) => {
    const model = served({ master_url: url });
    const { detach } = await mounted(model);
    expect(model.sent).toEqual([{ type: expected ? 'served' : 'replay' }]);
    detach();
  });

  it('come from the server too while it knows no master at all', async () => {
    server.answers.status = status({ state: 'none', master: null });
    const model = served();
    const { detach } = await mounted(model);
    expect(model.sent).toEqual([{ type: 'served' }]);
    detach();
  });

  it('come from the kernel where there is no server extension, and where there is no Jupyter', async () => {
    delete server.answers.status;
    const unserved = served();
    const first = await mounted(unserved);
    expect(unserved.sent).toEqual([{ type: 'replay' }]);
    delete document.body.dataset.baseUrl;
    server.asked.length = 0;
    const elsewhere = served();
    const second = await mounted(elsewhere);
    expect(elsewhere.sent).toEqual([{ type: 'replay' }]);
    expect(server.asked).toEqual([]);
    first.detach();
    second.detach();
  });

  it('have a button that ends the waiting of a cell, as long as one waits', async () => {
    const model = served();
    const { where, detach } = await mounted(model);
    await frame();
    const usable = () =>
      [...where.querySelectorAll<HTMLButtonElement>('.det-actions button')]
        .filter(each => !each.hidden)
        .map(each => each.textContent);
    expect(usable()).not.toContain('Leave it running');
    model.change({ waiting: true });
    await frame();
    expect(usable()).toEqual(['Pause', 'Stop', 'Leave it running']);
    buttonOf(where, 'Leave it running').click();
    expect(model.sent).toContainEqual({ type: 'leave' });
    model.change({ waiting: false });
    await frame();
    expect(usable()).not.toContain('Leave it running');
    detach();
  });

  it('that a version before saved of a run of its own are shown as they were', async () => {
    const experiment = detail({ state: 'COMPLETED', name: NASTY });
    const id = 'local-3' as unknown as number;
    const model = new FakeModel({ experiment_id: id, experiment });
    const { where, detach } = await mounted(model);
    expect(textsOf(where, '.det-badge')).toEqual(['Completed']);
    expect(textsOf(where, '.det-name')).toEqual([NASTY]);
    expect(where.querySelector('img, script')).toBeNull();
    expect(server.asked).toEqual([]);
    detach();
  });
});

describe('a view that is shown', () => {
  it('says that it loads, until it knows from where', async () => {
    const view = new Mounted(served().any);
    const where = place();
    const detach = view.attach(where);
    expect(textsOf(where, '[role=status]')).toEqual([TEXTS.loading]);
    await frame();
    expect(textsOf(where, 'p[role=status]')).toEqual([]);
    detach();
  });

  it('asks for nothing while it is hidden', async () => {
    const { where, detach } = await mounted(served());
    scrolled(where.firstElementChild!, false);
    await vi.advanceTimersByTimeAsync(1500);
    expect(server.streams).toBe(0);
    server.asked.length = 0;
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(server.asked).toEqual([]);
    scrolled(where.firstElementChild!, true);
    await frame();
    expect(server.streams).toBe(1);
    setPageHidden(true);
    await vi.advanceTimersByTimeAsync(1500);
    expect(server.streams).toBe(0);
    setPageHidden(false);
    detach();
  });

  it('is moved, not made anew, where its output is rendered again', async () => {
    const { view, where, detach } = await mounted(served());
    const host = where.firstElementChild;
    const other = place();
    const detachOther = view.attach(other);
    detach();
    await vi.advanceTimersByTimeAsync(5000);
    expect([other.firstElementChild, where.childElementCount]).toEqual([
      host,
      0
    ]);
    expect(server.streams).toBe(1);
    detachOther();
  });

  it('survives an output that is taken away and rendered again at once', async () => {
    const { view, detach, where } = await mounted(served());
    const host = where.firstElementChild;
    detach();
    await vi.advanceTimersByTimeAsync(1999);
    const detachAgain = view.attach(where);
    await vi.advanceTimersByTimeAsync(5000);
    expect([view.disposed, where.firstElementChild]).toEqual([false, host]);
    detachAgain();
  });

  it('goes back to where it was when a second output of it is closed', async () => {
    const { view, where, detach } = await mounted(served());
    const host = where.firstElementChild;
    const other = place();
    const detachOther = view.attach(other);
    detachOther();
    detachOther(); // twice is once
    await vi.advanceTimersByTimeAsync(5000);
    expect([view.disposed, where.firstElementChild]).toEqual([false, host]);
    detach();
  });

  it('ends two seconds after its last output, with stream, timers and observers', async () => {
    const { view, where, detach } = await mounted(served());
    detach();
    await vi.advanceTimersByTimeAsync(2000);
    expect(view.disposed).toBe(true);
    expect([where.childElementCount, server.streams, observing.size]).toEqual([
      0, 0, 0
    ]);
    server.asked.length = 0;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.asked).toEqual([]);
  });

  it('that is fed by the kernel leaves no handler at its model', async () => {
    const model = new FakeModel();
    const { detach } = await mounted(model);
    expect(model.handlers).toBeGreaterThan(0);
    detach();
    await vi.advanceTimersByTimeAsync(2000);
    expect(model.handlers).toBe(0);
  });

  it('that ends before it knows from where follows nothing', async () => {
    let answer: (response: Response) => void = () => undefined;
    vi.stubGlobal(
      'fetch',
      () => new Promise<Response>(resolve => (answer = resolve))
    );
    const model = served();
    const { view, detach } = await mounted(model);
    detach();
    await vi.advanceTimersByTimeAsync(2000);
    expect(view.disposed).toBe(true);
    vi.stubGlobal('fetch', answerOf);
    answer(new Response(JSON.stringify(MASTER_STATUS)));
    await frame();
    expect(server.streams).toBe(0);
  });
});

describe('the widget', () => {
  it('shows one view of a display however often it is rendered, by the model that lasts', async () => {
    const lasting = served({ view_id: 'display-1' });
    const passing = served({ view_id: 'display-1' });
    const end = widget.initialize({ model: lasting.any });
    const [first, second] = [place(), place()];
    const detachFirst = widget.render({ model: passing.any, el: first });
    const detachSecond = widget.render({ model: passing.any, el: second });
    await frame();
    expect(lasting.sent).toEqual([{ type: 'hello' }, { type: 'served' }]);
    expect(passing.sent).toEqual([]);
    expect(textsOf(document.body, '.det-title')).toEqual(['Experiment 7']);
    expect(second.contains(document.querySelector('.det-title'))).toBe(true);
    expect(first.textContent).toBe(TEXTS.elsewhere);
    detachFirst();
    detachSecond();
    await vi.advanceTimersByTimeAsync(2000);
    const detachThird = widget.render({ model: passing.any, el: first });
    await frame();
    expect(first.querySelector('.det-title')).not.toBeNull();
    expect(lasting.sent).toHaveLength(3);
    const detachFourth = widget.render({ model: passing.any, el: second });
    expect(first.textContent).toBe(TEXTS.elsewhere);
    detachFourth();
    expect(first.textContent).not.toContain(TEXTS.elsewhere);
    expect(first.querySelector('.det-title')).not.toBeNull();
    detachThird();
    end();
  });

  it('passes on what the notebook is to keep', () => {
    const model = served({ view_id: 'kept' });
    const kept = vi.fn();
    const unwatch = liveViews().watch('kept', () => undefined, kept);
    const end = widget.initialize({ model: model.any });
    model.tell({ type: 'answer', id: 1 });
    model.tell({ type: 'saved', data: { 'text/plain': 'completed' } });
    expect(kept.mock.calls).toEqual([[{ 'text/plain': 'completed' }]]);
    end();
    unwatch();
    expect(model.handlers).toBe(0);
  });

  it('tells displays apart', async () => {
    const [one, other] = [place(), place()];
    const ends = [
      widget.render({ model: served({ view_id: 'a' }).any, el: one }),
      widget.render({
        model: new FakeModel({ view_id: 'b', trial_id: 3 }).any,
        el: other
      })
    ];
    await frame();
    expect(textsOf(document.body, '.det-title')).toEqual([
      'Experiment 7',
      'Trial 3'
    ]);
    ends.forEach(end => end());
  });

  it('without a lasting model goes by the one that it is given', async () => {
    const model = served({ view_id: 'alone' });
    const end = widget.render({ model: model.any, el: place() });
    await frame();
    expect(model.sent).toEqual([{ type: 'served' }]);
    end();
  });
});

// @vitest-environment jsdom
/** An output with a view: live where its widget lives, else what was saved. */
import '../shared/browserParts';
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { VIEW_MIME_TYPE } from '../../src/lab/output/mimeType';
import { addViewOutput, ViewOutput } from '../../src/lab/output/viewOutput';
import type { ServerViews } from '../../src/lab/output/serverViews';
import { ENDED_EVENT, KNOWN_EVENT } from '../../src/shared/experimentView';
import { type Attach, LiveViews, liveViews } from '../../src/shared/liveViews';

// What Lumino's modules want of a browser when they are loaded, and jsdom has not.
vi.hoisted(() => vi.stubGlobal('DragEvent', class extends Event {}));

/** Renders what is saved as text; the registry of a real JupyterLab is used in the browser tests. */
class Saved extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly _type: string) {
    super();
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.node.textContent = `${this._type}: ${model.data[this._type] as string}`;
    return Promise.resolve();
  }
}

const factories: Array<[IRenderMime.IRendererFactory, number | undefined]> = [];
const registry = {
  createRenderer: (type: string) => new Saved(type),
  addFactory: (factory: IRenderMime.IRendererFactory, rank?: number) =>
    factories.push([factory, rank])
} as unknown as IRenderMimeRegistry;

let output: ViewOutput;

/** What the server would say, if it is asked. */
function asking(
  find: ServerViews['find'] = () => Promise.resolve(null),
  saved: ServerViews['saved'] = () => Promise.resolve(null),
  onRetry: ServerViews['onRetry'] = () => () => undefined
): ServerViews {
  return { find, saved, onRetry } as unknown as ServerViews;
}

/** A view that has its facts. */
function known(text: string, onEnd: () => void = () => undefined): Attach {
  return place => {
    const view = document.createElement('section');
    view.setAttribute('data-known', '');
    view.textContent = text;
    place.append(view);
    return onEnd;
  };
}

function model(
  data: Record<string, unknown>,
  id = 'one'
): IRenderMime.IMimeModel {
  return {
    data: { [VIEW_MIME_TYPE]: { view_id: id }, ...data }
  } as unknown as IRenderMime.IMimeModel;
}

/** Offer a view that says where it is. */
function offer(
  id: string,
  text = 'live'
): { withdraw: () => void; places: HTMLElement[] } {
  const places: HTMLElement[] = [];
  const withdraw = liveViews().offer(id, place => {
    places.push(place);
    return known(text, () => places.splice(places.indexOf(place), 1))(place);
  });
  return { withdraw, places };
}

beforeEach(() => {
  output = new ViewOutput(registry, asking());
  Widget.attach(output, document.body);
});

afterEach(() => output.dispose());

describe('ViewOutput', () => {
  it('shows a view that is found without the widget, until the widget comes', async () => {
    vi.useFakeTimers();
    const ended = vi.fn();
    const find = vi.fn(() => Promise.resolve(known('found', ended)));
    const other = new ViewOutput(registry, asking(find));
    const facts = {
      experiment_id: 3,
      trial_id: 0,
      created: 'then',
      state: 'ACTIVE'
    };
    const data = {
      'text/html': 'saved',
      [VIEW_MIME_TYPE]: { view_id: 'x', ...facts }
    };
    await other.renderModel(model(data));
    expect(other.node.textContent).toBe('text/html: saved');
    await vi.advanceTimersByTimeAsync(2000);
    expect(other.node.textContent).toBe('found');
    expect(find.mock.calls).toEqual([[{ view_id: 'x', ...facts }]]);
    const { withdraw } = offer('x');
    expect(other.node.textContent).toBe('live');
    expect(ended).toHaveBeenCalledOnce();
    withdraw();
    other.dispose();
    await vi.advanceTimersByTimeAsync(5000);
    expect(find).toHaveBeenCalledOnce();
    vi.useRealTimers();
  });

  it('does not look for a view that is there, or that the file names wrongly', async () => {
    vi.useFakeTimers();
    const find = vi.fn(() => Promise.resolve(null));
    const other = new ViewOutput(registry, asking(find));
    const { withdraw } = offer('there');
    await other.renderModel(model({}, 'there'));
    await vi.advanceTimersByTimeAsync(5000);
    expect(find).not.toHaveBeenCalled();
    const wrong = { view_id: 'w', experiment_id: '3/../4', created: 5 };
    await other.renderModel(
      model({ 'text/plain': 'a line', [VIEW_MIME_TYPE]: wrong })
    );
    await vi.advanceTimersByTimeAsync(2000);
    expect(find.mock.calls).toEqual([[{ view_id: 'w' }]]);
    expect(other.node.textContent).toBe('text/plain: a line');
    withdraw();
    other.dispose();
    vi.useRealTimers();
  });

  it('shows the best of what was saved where no widget lives, and renews it', async () => {
    await output.renderModel(model({ 'text/plain': 'a line' }));
    expect(output.node.textContent).toBe('text/plain: a line');
    await output.renderModel(
      model({ 'text/plain': 'a line', 'image/png': 'abc' })
    );
    expect(output.node.textContent).toBe('image/png: abc');
    const all = {
      'text/plain': 'a line',
      'image/png': 'abc',
      'text/html': '<b>'
    };
    await output.renderModel(model(all));
    expect(output.node.textContent).toBe('text/html: <b>');
    await output.renderModel(model({ ...all, 'text/html': '<i>' }));
    expect(output.node.textContent).toBe('text/html: <i>');
    expect(output.widgets).toHaveLength(1);
  });

  it('shows the live view when it comes, and what was saved last when it goes', async () => {
    await output.renderModel(model({ 'text/html': 'saved' }));
    const { withdraw, places } = offer('one');
    expect(output.node.textContent).toBe('live');
    await output.renderModel(model({ 'text/html': 'saved later' }));
    expect(output.node.textContent).toBe('live');
    expect(places).toHaveLength(1);
    withdraw();
    await Promise.resolve();
    expect(output.node.textContent).toBe('text/html: saved later');
    expect(places).toHaveLength(0);
  });

  it('shows what was saved below a view that knows nothing yet', async () => {
    await output.renderModel(model({ 'text/html': 'saved' }));
    const view = document.createElement('section');
    view.textContent = 'no connection yet, ';
    const withdraw = liveViews().offer('one', place => {
      place.append(view);
      return () => view.remove();
    });
    expect(output.node.textContent).toBe('no connection yet, text/html: saved');
    await output.renderModel(model({ 'text/html': 'saved later' }));
    expect(output.node.textContent).toContain('saved later');
    view.setAttribute('data-known', '');
    view.dispatchEvent(new Event(KNOWN_EVENT, { bubbles: true }));
    expect(output.node.textContent).toBe('no connection yet, ');
    withdraw();
  });

  it('looks again when a master may answer that could not be asked', async () => {
    vi.useFakeTimers();
    const listeners = new Set<() => void>();
    const find = vi.fn(() => Promise.reject<Attach>(new Error('no master')));
    const views = asking(find, undefined, listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    });
    const other = new ViewOutput(registry, views);
    await other.renderModel(model({ 'text/plain': 'a line' }, 'away'));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(find).toHaveBeenCalledTimes(4);
    expect(listeners.size).toBe(1);
    const notices = other.node.querySelectorAll('[role=status]');
    expect(notices).toHaveLength(1);
    expect(notices[0]?.textContent).toContain('not live: no master. ');
    expect(other.node.textContent).toMatch(/^As it was saved.*text\/plain: a/);
    find.mockImplementation(() => Promise.resolve(known('found')));
    listeners.forEach(retry => retry());
    await vi.advanceTimersByTimeAsync(2000);
    expect(other.node.textContent).toBe('found');
    expect(listeners.size).toBe(0);
    other.dispose();
    vi.useRealTimers();
  });

  it('shows a view that is there already, and another display is another view', async () => {
    const one = offer('one', 'first');
    const two = offer('two', 'second');
    await output.renderModel(model({}, 'one'));
    expect(output.node.textContent).toBe('first');
    await output.renderModel(model({}, 'two'));
    expect(output.node.textContent).toBe('second');
    expect(one.places).toHaveLength(0);
    output.dispose();
    expect(two.places).toHaveLength(0);
    one.withdraw();
    two.withdraw();
  });

  it('is asked before the widget manager, and only in notebooks that are trusted', () => {
    addViewOutput(registry, asking());
    const [[factory, rank]] = factories as [
      [IRenderMime.IRendererFactory, number]
    ];
    expect(factory.mimeTypes).toEqual([VIEW_MIME_TYPE]);
    expect(factory.safe).toBe(false);
    expect(rank).toBeLessThan(-10);
    expect(
      factory.createRenderer({} as IRenderMime.IRendererOptions)
    ).toBeInstanceOf(ViewOutput);
  });
});

describe('what is saved of a view that has ended', () => {
  const NAMED = { view_id: 'one', experiment_id: 3, state: 'ACTIVE' };
  const FORM = {
    created: 'then',
    state: 'COMPLETED' as const,
    data: { 'text/plain': 'completed' }
  };

  /** The output of a cell, shown while its view ends. */
  async function ended(named: object, saved: ServerViews['saved']) {
    vi.useFakeTimers();
    const shown = new ViewOutput(registry, asking(undefined, saved));
    const data = {
      [VIEW_MIME_TYPE]: named,
      'text/plain': 'running',
      'application/vnd.jupyter.widget-view+json': { model_id: 'm' }
    };
    const set = vi.fn();
    const output = {
      data,
      toJSON: () => ({ output_type: 'display_data', data })
    };
    const model = { length: 1, get: () => output, set };
    shown.parent = Object.assign(new Widget(), { model });
    const { withdraw, places } = offer('one');
    await shown.renderModel({ data } as unknown as IRenderMime.IMimeModel);
    places[0]?.dispatchEvent(new Event(ENDED_EVENT, { bubbles: true }));
    return {
      shown,
      data,
      set,
      end: () => {
        withdraw();
        shown.dispose();
        vi.useRealTimers();
      }
    };
  }

  it('is said by the server, if the kernel does not', async () => {
    const { data, set, end } = await ended(NAMED, () => Promise.resolve(FORM));
    await vi.advanceTimersByTimeAsync(14_000);
    expect(set).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2000);
    const kept = {
      ...data,
      'text/plain': 'completed',
      [VIEW_MIME_TYPE]: { ...NAMED, state: 'COMPLETED' }
    };
    expect(set.mock.calls).toEqual([
      [0, { output_type: 'display_data', data: kept }]
    ]);
    end();
  });

  it('is left to the kernel that has said it', async () => {
    const saved = vi.fn(() => Promise.resolve(FORM));
    const { shown, data, set, end } = await ended(NAMED, saved);
    const said = {
      ...data,
      [VIEW_MIME_TYPE]: { ...NAMED, state: 'COMPLETED' }
    };
    await shown.renderModel({
      data: said
    } as unknown as IRenderMime.IMimeModel);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(saved).not.toHaveBeenCalled();
    expect(set).not.toHaveBeenCalled();
    end();
  });

  it('is asked for again where nobody answers, less and less often', async () => {
    const saved = vi.fn(() =>
      Promise.reject<typeof FORM>(new Error('no master'))
    );
    const { set, end } = await ended(NAMED, saved);
    await vi.advanceTimersByTimeAsync(200_000);
    expect(saved).toHaveBeenCalledTimes(3);
    expect(set).not.toHaveBeenCalled();
    saved.mockImplementation(() => Promise.resolve(FORM));
    await vi.advanceTimersByTimeAsync(50_000);
    expect(set).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(1_000_000);
    expect(saved).toHaveBeenCalledTimes(4);
    end();
  });

  it('is asked for at once by a view that no kernel has', async () => {
    vi.useFakeTimers();
    const saved = vi.fn(() => Promise.resolve(FORM));
    const find = () => Promise.resolve(known('found'));
    const shown = new ViewOutput(registry, asking(find, saved));
    await shown.renderModel(model({ [VIEW_MIME_TYPE]: NAMED }));
    await vi.advanceTimersByTimeAsync(2000);
    shown.node
      .querySelector('section')
      ?.dispatchEvent(new Event(ENDED_EVENT, { bubbles: true }));
    await vi.advanceTimersByTimeAsync(100);
    expect(saved).toHaveBeenCalledOnce();
    shown.dispose();
    vi.useRealTimers();
  });
});

describe('liveViews', () => {
  it('is one for the page, whichever bundle asks', () => {
    const page = {};
    expect(liveViews(page)).toBe(liveViews(page));
    expect(liveViews(page)).not.toBe(liveViews({}));
  });

  it('tells nothing after the end of watching, and a view that was replaced withdraws nothing', () => {
    const views = new LiveViews();
    const told: boolean[] = [];
    const end = views.watch('one', attach => told.push(attach !== null));
    const first = views.offer('one', () => () => undefined);
    const second = views.offer('one', () => () => undefined);
    first();
    expect(told).toEqual([true, true]);
    second();
    expect(told).toEqual([true, true, false]);
    end();
    views.offer('one', () => () => undefined);
    expect(told).toHaveLength(3);
  });
});

// @vitest-environment jsdom
import { observing, resized } from '../shared/browserParts';
import {
  act,
  cleanup,
  fireEvent,
  render,
  screen
} from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { ExperimentFeed } from '../../src/shared/feed';
import type { ExperimentView } from '../../src/shared/model';
import type { Navigation } from '../../src/workspace/app/host';
import { Visibility, WorkspaceContext } from '../../src/workspace/app/context';
import { ChartsTab } from '../../src/workspace/charts/chartsTab';
import { CurvePlot } from '../../src/workspace/charts/curvePlot';
import { DEFAULT_SETTINGS } from '../../src/workspace/charts/series';
import { ChartSync } from '../../src/workspace/charts/sync';
import { LiveExperiments } from '../../src/workspace/data/liveExperiments';
import { Toasts } from '../../src/workspace/parts/toasts';
import {
  curve,
  flatCurve,
  NASTY,
  systemSample,
  trial,
  view
} from '../shared/examples';
import { scrolled } from '../shared/browserParts';
import { ScriptedTransport } from '../shared/scriptedTransport';

const CLOCKS = 'master/experiments/7/clocks';

class Places implements Navigation {
  private readonly _listeners = new Set<() => void>();
  current = '/experiments/7/charts';

  subscribe(listener: () => void) {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  open(address: string): void {
    this.current = address;
    this._listeners.forEach(listener => listener());
  }

  href(address: string): string {
    return `#${address}`;
  }

  get listeners(): number {
    return this._listeners.size;
  }
}

function opened(first: ExperimentView, address = '/experiments/7/charts') {
  const transport = new ScriptedTransport({ [CLOCKS]: [] });
  const navigation = new Places();
  navigation.current = address;
  const live = new LiveExperiments(transport);
  const feed = { content: () => new Promise(() => undefined) };
  const workspace = {
    host: {
      kind: 'page' as const,
      transport,
      navigation,
      download: () => Promise.resolve(),
      setTitle: () => undefined
    },
    visibility: new Visibility(),
    live,
    toasts: new Toasts()
  };
  const page = (shown: ExperimentView) => (
    <WorkspaceContext.Provider value={workspace}>
      <div class="det-app">
        <ChartsTab view={shown} feed={feed as unknown as ExperimentFeed} />
      </div>
    </WorkspaceContext.Provider>
  );
  const { rerender, container, unmount } = render(page(first));
  const near = () =>
    void act(() =>
      container
        .querySelectorAll('.det-board-chart')
        .forEach(each => scrolled(each, true))
    );
  void near();
  return {
    transport,
    navigation,
    container,
    unmount,
    near,
    show: (shown: ExperimentView) => act(() => rerender(page(shown))),
    titles: () =>
      [...container.querySelectorAll('.det-curve-title')].map(
        each => each.textContent
      )
  };
}

const CURVES = [
  curve(),
  flatCurve([10, 20, 30], [4, 3, 2], { name: 'val_loss', kind: 'validation' }),
  curve({ name: 'lr' }),
  curve({ name: NASTY })
];

beforeEach(() => vi.useFakeTimers({ shouldAdvanceTime: true }));
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

describe('the charts of an experiment', () => {
  it('are one for each metric, with names as text and values in the legend', () => {
    const { titles, container } = opened(view({ curves: CURVES }));
    expect(titles()).toEqual(['loss', 'lr', NASTY]);
    expect(screen.getByRole('button', { name: /^loss 1$/ })).toBeTruthy();
    expect(screen.getByRole('button', { name: /^val_loss 2$/ })).toBeTruthy();
    expect(container.querySelector('img')).toBeNull();
    const slider = screen.getByRole('slider', { name: /^loss, over batch/ });
    expect(slider.getAttribute('aria-valuetext')).toMatch(/val_loss 2/);
  });

  it('say that there is nothing yet', () => {
    opened(view());
    expect(
      screen.getByText(/charts appear with the first report/)
    ).toBeTruthy();
  });

  it('offer the axes that are known', async () => {
    const { show, transport } = opened(view({ curves: CURVES }));
    const axes = () =>
      [...screen.getByLabelText<HTMLSelectElement>('X axis').options].map(
        each => each.value
      );
    expect(axes()).toEqual(['batch']);
    transport.answers.set(CLOCKS, [
      { trial_id: 3, started: 1000, batch: [10, 30], time: [1001, 1003] }
    ]);
    void show(view({ curves: [...CURVES] }));
    await vi.waitFor(() =>
      expect(axes()).toEqual(['batch', 'time', 'relative'])
    );
  });

  it('are drawn as the address says, and the address follows', async () => {
    const { navigation, titles, near } = opened(
      view({ curves: CURVES }),
      '/experiments/7/charts?smooth=ema%3A0.6&pin=lr&log=y'
    );
    expect(titles()[0]).toBe('lr');
    expect(screen.getByLabelText<HTMLInputElement>('Log y').checked).toBe(true);
    expect(screen.getByLabelText<HTMLSelectElement>('Smoothing').value).toBe(
      'ema'
    );
    fireEvent.click(screen.getByRole('button', { name: 'Unpin lr' }));
    void near();
    expect(navigation.current).not.toContain('pin');
    const slider = screen.getByRole('slider', { name: /^loss, over/ });
    void act(() => slider.focus());
    fireEvent.keyDown(slider, { key: '+' });
    await vi.waitFor(() => expect(navigation.current).toContain('zoom='));
    fireEvent.click(screen.getByRole('button', { name: 'Reset zoom' }));
    expect(navigation.current).not.toContain('zoom=');
  });

  it('highlight a trial by pointing at its name and by the focus of the keyboard', () => {
    const two = [
      trial({ id: 3, hparams: { a: 1 } }),
      trial({ id: 4, hparams: { a: 2 } })
    ];
    opened(view({ trials: two, curves: [curve(), curve({ trial_id: 4 })] }));
    const [one, other] = ['trial 3', 'trial 4'].map(name =>
      screen.getByRole('button', { name: new RegExp(name) })
    );
    void act(() => one!.focus());
    expect(other!.dataset['faded']).toBe('true');
    fireEvent.mouseEnter(other!);
    expect(one!.dataset['faded']).toBe('true');
    expect(one!.textContent).toContain('a=1');
  });

  it('move by the keyboard, are hidden and come back', () => {
    const { titles, near } = opened(view({ curves: CURVES }));
    fireEvent.keyDown(
      screen.getByRole('button', { name: 'Move lr: drag, or arrow keys' }),
      { key: 'ArrowLeft' }
    );
    void near();
    expect(titles()).toEqual(['lr', 'loss', NASTY]);
    fireEvent.click(screen.getByRole('button', { name: 'More about lr' }));
    fireEvent.click(screen.getByRole('menuitem', { name: 'Hide' }));
    expect(titles()).toEqual(['loss', NASTY]);
    fireEvent.click(screen.getByRole('button', { name: 'Charts (1 hidden)' }));
    fireEvent.click(screen.getByLabelText('lr'));
    void near();
    expect(titles()).toContain('lr');
  });

  it('have what the machine does beside them', () => {
    const system = {
      trialId: 3,
      samples: [systemSample(), systemSample({ time: 1_800_000_005 })]
    };
    const { titles } = opened(view({ curves: CURVES, system }));
    expect(titles()).toEqual(['loss', 'lr', NASTY, 'CPU', 'Memory']);
    expect(screen.getByRole('heading', { name: 'System' })).toBeTruthy();
  });

  it('are of the best twenty where there are more than fifty trials', async () => {
    const trials = Array.from({ length: 60 }, (_, at) =>
      trial({ id: at + 1, number: at + 1, best_validation: at / 100 })
    );
    const { transport, show } = opened(view({ trials }));
    await vi.waitFor(() =>
      expect(transport.requests.join('\n')).toContain('only=41,42,')
    );
    void show(view({ trials }));
    const asked = transport.requests.find(each => each.includes('/curves'));
    expect(/only=([\d,]+)/.exec(asked!)?.[1]?.split(',')).toHaveLength(20);
  });

  it('keep zoom, elements and listeners through many updates', async () => {
    const { show, container, navigation } = opened(view({ curves: CURVES }));
    const slider = screen.getByRole('slider', { name: /^loss, over/ });
    void act(() => slider.focus());
    fireEvent.keyDown(slider, { key: '+' });
    await vi.waitFor(() => expect(navigation.current).toContain('zoom='));
    const counts = () => [
      document.querySelectorAll('*').length,
      observing.size,
      navigation.listeners
    ];
    const canvas = container.querySelector('canvas');
    const before = counts();
    const zoom = navigation.current;
    for (let round = 0; round < 200; round++) {
      const batch = [10, 20, 30 + round];
      void show(
        view({ curves: CURVES.map(each => ({ ...each, batch, last: round })) })
      );
    }
    expect(counts()).toEqual(before);
    expect(container.querySelector('canvas')).toBe(canvas);
    expect(navigation.current).toBe(zoom);
    container.querySelectorAll('.det-curve-plot').forEach(resized);
  });

  it('have a plot that grows by nothing in 3,000 updates', () => {
    const place = document.body.appendChild(document.createElement('div'));
    const sync = new ChartSync();
    const drawn = vi.fn();
    const plot = new CurvePlot(place, drawn, () => undefined);
    const update = (round: number) =>
      plot.update({
        key: 'loss',
        title: 'loss',
        settings: DEFAULT_SETTINGS,
        sync,
        series: [
          {
            key: 'loss',
            label: 'loss',
            colour: 0,
            x: { batch: [1, 2, 3 + round] },
            values: [3, 2, round]
          }
        ]
      });
    update(0);
    const counts = () => [
      document.querySelectorAll('*').length,
      observing.size,
      sync.size
    ];
    const before = counts();
    for (let round = 1; round <= 3000; round++) {
      update(round);
    }
    expect(counts()).toEqual(before);
    expect(drawn).toHaveBeenCalledTimes(3001);
    plot.dispose();
    place.remove();
    expect(sync.size).toBe(0);
  });
});

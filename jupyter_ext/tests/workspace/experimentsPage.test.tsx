// @vitest-environment jsdom
/** The page of experiments, as a user works with it; the master's answers are scripted. */
import {
  cleanup,
  fireEvent,
  render,
  screen,
  waitFor,
  within
} from '@testing-library/preact';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { Visibility, WorkspaceContext } from '../../src/workspace/app/context';
import type { Navigation } from '../../src/workspace/app/host';
import { LiveExperiments } from '../../src/workspace/data/liveExperiments';
import { ExperimentsPage } from '../../src/workspace/experiments/page';
import { DialogHost } from '../../src/workspace/parts/dialog';
import { Toasts } from '../../src/workspace/parts/toasts';
import { RequestError } from '../../src/shared/transport';
import { AWAY, ScriptedTransport } from '../shared/scriptedTransport';
import { NAMES, row } from './experimentRows';

class FakeNavigation implements Navigation {
  private readonly _listeners = new Set<() => void>();
  current = '/experiments';

  subscribe(listener: () => void) {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  open(address: string) {
    this.current = address;
    this._listeners.forEach(listener => listener());
  }

  href(address: string) {
    return `#${address}`;
  }
}

let transport: ScriptedTransport;
let navigation: FakeNavigation;
let toasts: Toasts;
let live: LiveExperiments;

beforeEach(() => {
  // jsdom has neither dialogs nor scrolling.
  Object.assign(HTMLDialogElement.prototype, {
    showModal(this: HTMLDialogElement) {
      this.open = true;
    },
    close(this: HTMLDialogElement) {
      this.open = false;
    }
  });
  Object.assign(Element.prototype, { scrollTo: () => undefined });
  localStorage.clear();
  transport = new ScriptedTransport({
    'master/experiment-list': list(9, 8, 7),
    'master/experiment-names': NAMES,
    'master/experiment-rows': list(9, 8, 7).rows,
    'master/experiment-views': []
  });
  navigation = new FakeNavigation();
  toasts = new Toasts();
  live = new LiveExperiments(transport);
});
afterEach(cleanup);

function list(...ids: number[]) {
  return {
    ids,
    total: ids.length,
    notice: '',
    rows: ids.map(id => row({ id }))
  };
}

function open(address = '/experiments') {
  navigation.current = address;
  const workspace = {
    host: {
      kind: 'page' as const,
      transport,
      navigation,
      download: () => Promise.resolve(),
      setTitle: () => undefined
    },
    live,
    visibility: new Visibility(),
    toasts
  };
  return render(
    <WorkspaceContext.Provider value={workspace}>
      <div class="det-app">
        <ExperimentsPage />
        <DialogHost />
      </div>
    </WorkspaceContext.Provider>
  );
}

const asked = (part: string) =>
  transport.requests.filter(request => request.includes(part));
const rowOf = (id: number) =>
  screen.getByRole('row', { name: new RegExp(`digits ${id}`) });

it('shows the experiments and opens one by a click', async () => {
  open();
  await screen.findByText('digits 9');
  expect(screen.getByText('3 experiments')).toBeTruthy();
  fireEvent.click(rowOf(8));
  expect(navigation.current).toBe('/experiments/8');
});

it('a click on a head sorts by the master, and the address carries it', async () => {
  open();
  await screen.findByText('digits 9');
  fireEvent.click(screen.getByRole('button', { name: /^Duration/ }));
  await waitFor(() => expect(asked('order_by=duration desc').length).toBe(1));
  expect(navigation.current).toContain('sort=duration+desc');
  expect(
    screen
      .getByRole('columnheader', { name: /Duration/ })
      .getAttribute('aria-sort')
  ).toBe('descending');
});

it('an error in the query stands under the box, and the table stays', async () => {
  open();
  await screen.findByText('digits 9');
  const words =
    'The query does not parse at character 5, where it ends: expected a value.\n  lr >\n      ^';
  transport.answers.set(
    'master/experiment-list',
    new RequestError(words, 400, 'refused')
  );
  const box = screen.getByRole('combobox', { name: 'Search experiments' });
  fireEvent.input(box, { target: { value: 'lr >' } });
  fireEvent.keyDown(box, { key: 'Enter' });
  expect(
    (await screen.findByText(/does not parse at character 5/)).textContent
  ).toBe(words);
  expect(screen.getByText('digits 9')).toBeTruthy();
  expect(box.getAttribute('aria-invalid')).toBe('true');
});

it('completes the query by keyboard', async () => {
  open();
  await screen.findByText('digits 9');
  await waitFor(() => expect(asked('experiment-names').length).toBe(1));
  const box = screen.getByRole<HTMLInputElement>('combobox', {
    name: 'Search experiments'
  });
  fireEvent.input(box, { target: { value: 'lab' } });
  await waitFor(() => expect(box.getAttribute('aria-expanded')).toBe('true'));
  fireEvent.keyDown(box, { key: 'ArrowDown' });
  await waitFor(() =>
    expect(box.getAttribute('aria-activedescendant')).toBeTruthy()
  );
  fireEvent.keyDown(box, { key: 'Enter' });
  await waitFor(() => expect(box.value).toBe('label '));
  fireEvent.keyDown(box, { key: 'Escape' });
  await waitFor(() => expect(box.getAttribute('aria-expanded')).toBe('false'));
});

it('filters are chips that can be removed', async () => {
  open('/experiments?state=Running,Failed&label=baseline');
  await screen.findByText('digits 9');
  expect(asked('state in (Running, Failed)').length).toBe(1);
  fireEvent.click(screen.getByRole('button', { name: 'Remove State: Failed' }));
  await waitFor(() =>
    expect(navigation.current).toBe('/experiments?state=Running&label=baseline')
  );
});

it('without experiments it says how to begin; with a search that none matches, how to get rid of it', async () => {
  transport.answers.set('master/experiment-list', list());
  open();
  await screen.findByText('No experiments yet.');
  cleanup();
  open('/experiments?query=nothing');
  fireEvent.click(
    await screen.findByRole('button', { name: 'Clear search and filters' })
  );
  await waitFor(() => expect(navigation.current).toBe('/experiments'));
});

it('a master that is away is told of with a way to try again', async () => {
  transport.answers.set('master/experiment-list', AWAY);
  open();
  await screen.findByText('The experiments could not be loaded.');
  transport.answers.set('master/experiment-list', list(9));
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByText('digits 9');
});

it('rows that fail to load while others are shown leave these, and are asked for again on request', async () => {
  transport.answers.set('master/experiment-list', {
    ...list(9),
    ids: [9, 8],
    total: 2
  });
  transport.answers.set(
    'master/experiment-rows',
    new RequestError('Sign in again.', 401, 'refused')
  );
  open();
  await screen.findByText(/Not everything could be loaded: Sign in again/);
  expect(screen.getByText('digits 9')).toBeTruthy();
  transport.answers.set('master/experiment-rows', [
    row({ id: 8 }),
    row({ id: 9 })
  ]);
  transport.answers.set('master/experiment-list', { ...list(9, 8), rows: [] });
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByText('digits 8');
});

it('several are stopped, those that are refused are listed, and the others are done', async () => {
  transport.answers.set('master/experiments/9/stop', {});
  transport.answers.set(
    'master/experiments/8/stop',
    new RequestError('There is no experiment 8.', 404, 'refused')
  );
  open();
  await screen.findByText('digits 9');
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select digits 9' }));
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select digits 8' }), {
    shiftKey: true
  });
  await screen.findByText('2 experiments selected');
  fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
  const dialog = await screen.findByRole('dialog', { hidden: true });
  expect(dialog.textContent).toContain('1 experiment could not be stopped.');
  expect(dialog.textContent).toContain('#8 There is no experiment 8.');
  expect(toasts.shown.map(({ text }) => text)).toEqual([
    'Stopped 1 experiment.'
  ]);
});

it('a deletion is asked for with what it frees; what cannot be deleted stays', async () => {
  const deletion = {
    experiment_id: 9,
    name: 'digits 9',
    checkpoints: 2,
    checkpoint_bytes: 3e6,
    obstacles: []
  };
  transport.answers.set('master/experiments/9/deletion', deletion);
  transport.answers.set('master/experiments/8/deletion', {
    ...deletion,
    experiment_id: 8,
    obstacles: ['It goes on.']
  });
  transport.answers.set('master/experiments/9', deletion);
  open();
  await screen.findByText('digits 9');
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select digits 9' }));
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select digits 8' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Delete…' }));
  const dialog = await screen.findByRole('dialog', { hidden: true });
  expect(dialog.textContent).toContain('This frees 3 MB');
  expect(dialog.textContent).toContain('#8 It goes on.');
  fireEvent.click(
    within(dialog).getByRole('button', { name: 'Delete', hidden: true })
  );
  await waitFor(() => expect(asked('DELETE').length).toBe(1));
  expect(asked('DELETE')[0]).toContain('master/experiments/9');
});

it('what another tab has deleted leaves the table and the selection', async () => {
  open();
  await screen.findByText('digits 9');
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select digits 8' }));
  await screen.findByText('1 experiment selected');
  transport.answers.set('master/experiment-list', { ...list(9, 7), rows: [] });
  transport.answers.set('master/experiment-rows', [
    row({ id: 9 }),
    row({ id: 7 })
  ]);
  (live as unknown as { _tell(changed: Set<number>): void })._tell(
    new Set([8])
  );
  await waitFor(() => expect(screen.queryByText('digits 8')).toBeNull());
  await screen.findByText('2 experiments');
});

it('the keyboard moves, selects a range and opens', async () => {
  open();
  await screen.findByText('digits 9');
  const grid = screen.getByRole('grid', { name: 'Experiments' });
  fireEvent.focus(grid);
  grid.focus();
  fireEvent.keyDown(grid, { key: 'ArrowDown' });
  fireEvent.keyDown(grid, { key: ' ' });
  await screen.findByText('1 experiment selected');
  fireEvent.keyDown(grid, { key: 'ArrowDown', shiftKey: true });
  await screen.findByText(/[23] experiments selected/);
  fireEvent.keyDown(grid, { key: 'a', ctrlKey: true });
  await screen.findByText('3 experiments selected');
  fireEvent.keyDown(grid, { key: 'Escape' });
  await screen.findByText('3 experiments');
  fireEvent.keyDown(grid, { key: 'Enter' });
  expect(navigation.current).toMatch(/^\/experiments\/\d$/);
});

it('groups open to their experiments', async () => {
  transport.answers.set('master/experiment-groups', {
    groups: [
      {
        value: 0.1,
        count: 2,
        measured: 2,
        mean: 0.5,
        deviation: 0.1,
        best: 0.4,
        ids: [9, 8]
      },
      {
        value: null,
        count: 1,
        measured: 0,
        mean: null,
        deviation: null,
        best: null,
        ids: [7]
      }
    ],
    total: 3,
    grouped: 3,
    other_groups: 0,
    notice: ''
  });
  open('/experiments?group=hp:lr');
  const group = await screen.findByText('0.1');
  expect(screen.getByText(/mean 0.5 ± 0.1/)).toBeTruthy();
  expect(screen.getByText('without lr')).toBeTruthy();
  expect(screen.queryByText('digits 9')).toBeNull();
  fireEvent.click(group);
  await screen.findByText('digits 9');
  expect(asked('experiment-groups')[0]).toContain(
    'measure=metric:val_accuracy desc'
  );
});

it('columns are added, kept in this browser, and widths change by keyboard', async () => {
  open();
  await screen.findByText('digits 9');
  await waitFor(() => expect(asked('experiment-names').length).toBe(1));
  fireEvent.click(screen.getByRole('button', { name: /^Columns/ }));
  fireEvent.click(await screen.findByRole('button', { name: /^lr/ }));
  await screen.findByRole('columnheader', { name: /^lr/ });
  expect(asked('hparams=true').length).toBeGreaterThan(0);
  const edge = screen.getByRole('separator', { name: 'Width of State' });
  const before = Number(edge.getAttribute('aria-valuenow'));
  fireEvent.keyDown(edge, { key: 'ArrowRight' });
  await waitFor(() =>
    expect(Number(edge.getAttribute('aria-valuenow'))).toBe(before + 16)
  );
  cleanup();
  open();
  await screen.findByRole('columnheader', { name: /^lr/ });
  expect(
    Number(
      screen
        .getByRole('separator', { name: 'Width of State' })
        .getAttribute('aria-valuenow')
    )
  ).toBe(before + 16);
});

it('a view is saved with what is shown, and chosen again', async () => {
  open('/experiments?query=digits&sort=name asc');
  await screen.findByText('digits 9');
  fireEvent.click(screen.getByRole('button', { name: /^Views/ }));
  const name = await screen.findByRole('textbox', {
    name: 'Save what is shown as'
  });
  fireEvent.input(name, { target: { value: 'Mine' } });
  const kept = { name: 'Mine', parameters: { label: 'wide' }, updated: '' };
  transport.answers.set('master/experiment-views', [kept]);
  fireEvent.click(await screen.findByRole('button', { name: 'Save' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Mine' }));
  expect(transport.bodies).toEqual([
    {
      name: 'Mine',
      parameters: { query: 'digits', sort: 'name asc', columns: 'default' }
    }
  ]);
  await waitFor(() =>
    expect(navigation.current).toBe('/experiments?label=wide&view=Mine')
  );
});

it('names with tags are text, and very long ones are cut', async () => {
  const name = `<img src=x onerror="window.hurt = 1">${'x'.repeat(10_000)}`;
  transport.answers.set('master/experiment-list', {
    ...list(),
    ids: [9],
    total: 1,
    rows: [row({ id: 9, name })]
  });
  const { container } = open();
  const link = await screen.findByRole('link', { name: /^<img/ });
  expect(container.querySelector('img')).toBeNull();
  expect(link.textContent.length).toBeLessThanOrEqual(300);
});

it('the menu of a row offers what can be done and says why something cannot', async () => {
  const done = row({
    id: 9,
    state: 'COMPLETED',
    ended: '2026-11-20T11:59:00Z'
  });
  transport.answers.set('master/experiment-list', { ...list(9), rows: [done] });
  open();
  await screen.findByText('digits 9');
  fireEvent.contextMenu(rowOf(9));
  const stop = await screen.findByRole('menuitem', { name: 'Stop' });
  expect(stop.getAttribute('title')).toBe('It has ended.');
  transport.answers.set('master/experiments/9', {});
  fireEvent.click(screen.getByRole('menuitem', { name: 'Archive' }));
  await waitFor(() => expect(transport.bodies).toEqual([{ archived: true }]));
  expect(screen.queryByRole('menu')).toBeNull();
});

// @vitest-environment jsdom
import {
  cleanup,
  fireEvent,
  render,
  screen,
  waitFor
} from '@testing-library/preact';
import { afterEach, expect, test, vi } from 'vitest';

import '../shared/browserParts';
import { readAddress } from '../../src/workspace/app/address';
import {
  useAddress,
  Visibility,
  type Workspace,
  WorkspaceContext
} from '../../src/workspace/app/context';
import type { Host } from '../../src/workspace/app/host';
import { comparedCharts } from '../../src/workspace/compare/charts';
import {
  chosenText,
  type Compared,
  readChosen
} from '../../src/workspace/compare/load';
import { ComparePage } from '../../src/workspace/compare/page';
import {
  hparamRows,
  metricRows,
  type Side
} from '../../src/workspace/compare/rows';
import { LiveExperiments } from '../../src/workspace/data/liveExperiments';
import { Toasts } from '../../src/workspace/parts/toasts';
import { curve, detail, trial } from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';

afterEach(cleanup);

/** Navigation that a test can read. */
function navigation(first: string) {
  const listeners = new Set<() => void>();
  return {
    current: first,
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    open(address: string) {
      this.current = address;
      listeners.forEach(listener => listener());
    },
    href: (address: string) => `#${address}`
  };
}

function Page() {
  const { place } = useAddress();
  return place.page === 'compare' ? <ComparePage ids={place.ids} /> : null;
}

function show(address: string, answers: Record<string, unknown>) {
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  const transport = new ScriptedTransport(answers);
  const moved = navigation(address);
  const host = {
    kind: 'page',
    transport,
    navigation: moved,
    download: () => Promise.resolve(),
    setTitle: () => undefined
  } as unknown as Host;
  const workspace: Workspace = {
    host,
    visibility: new Visibility(),
    live: new LiveExperiments(transport),
    toasts: new Toasts()
  };
  render(
    <WorkspaceContext.Provider value={workspace}>
      <Page />
    </WorkspaceContext.Provider>
  );
  return { transport, moved };
}

const summary = (id: number, experiment: number, loss: number) => ({
  trial_id: id,
  experiment_id: experiment,
  hparams: {},
  metrics: [
    {
      kind: 'validation',
      name: 'loss',
      last: loss,
      last_batch: 9,
      minimum: loss,
      maximum: loss
    }
  ]
});

const ANSWERS = {
  'master/experiments/1': detail({
    id: 1,
    name: 'first',
    metric: 'loss',
    smaller_is_better: true
  }),
  'master/experiments/1/trials': [
    trial({ id: 11, number: 1, hparams: { rate: 0.1, units: 8 } }),
    trial({
      id: 12,
      number: 2,
      hparams: { rate: 0.3, units: 8 },
      best_validation: 0.2
    })
  ],
  'master/experiments/2': detail({
    id: 2,
    name: '<img src=x onerror=alert(1)>',
    metric: 'loss',
    smaller_is_better: true,
    config: { searcher: { name: 'random' } }
  }),
  'master/experiments/2/trials': [
    trial({
      id: 21,
      number: 1,
      hparams: { rate: 0.2, units: 8 },
      best_validation: 0.5
    })
  ],
  'master/trial-summaries': [
    summary(11, 1, 0.9),
    summary(12, 1, 0.2),
    summary(21, 2, 0.5)
  ]
};

test('the best trials stand side by side; the best value is marked, what is the same is left out', async () => {
  show('/compare/1,2', ANSWERS);
  await screen.findByText('Comparison of 2 experiments');

  const row = screen.getByRole('rowheader', { name: 'rate' }).parentElement!;
  expect(row.textContent).toBe('rate0.30.2');
  expect(screen.queryByRole('rowheader', { name: 'units' })).toBeNull();
  const loss = screen.getByRole('rowheader', { name: 'loss' }).parentElement!;
  expect(loss.querySelector('strong')?.textContent).toContain('0.2');
  expect(document.querySelector('img')).toBeNull();
});

test('rows that are the same are shown when asked for, and the address keeps it', async () => {
  const { moved } = show('/compare/1,2', ANSWERS);
  fireEvent.click(
    await screen.findByLabelText('Rows that are the same in all, too')
  );

  await screen.findByRole('rowheader', { name: 'units' });
  expect(moved.current).toBe('/compare/1,2?all=yes');
});

test('another trial is chosen; the best one again leaves the address', async () => {
  const { moved } = show('/compare/1,2', ANSWERS);
  const choice = await screen.findByLabelText('Trial of #1');
  expect((choice as HTMLSelectElement).value).toBe('2');

  fireEvent.change(choice, { target: { value: '1' } });
  await waitFor(() =>
    expect(readAddress(moved.current).parameters).toEqual({ chosen: '1:1' })
  );
  expect(
    screen.getByRole('rowheader', { name: 'rate' }).parentElement!.textContent
  ).toBe('rate0.10.2');

  fireEvent.change(choice, { target: { value: '2' } });
  expect(moved.current).toBe('/compare/1,2');
});

test('an experiment that was deleted is named and left out', async () => {
  show('/compare/1,9', ANSWERS);

  await screen.findByText('Comparison of 1 experiment');
  expect(
    screen.getByText(
      'Experiment #9 is left out: it does not exist any more, or never did.'
    )
  ).toBeTruthy();
});

test('an experiment is taken out of the comparison', async () => {
  const { moved } = show('/compare/1,2?show=configuration', ANSWERS);
  fireEvent.click(
    await screen.findByLabelText('Take #2 out of the comparison')
  );

  expect(moved.current).toBe('/compare/1?show=configuration');
});

test('the configurations of two are compared line by line', async () => {
  show('/compare/1,2?show=configuration', ANSWERS);

  await screen.findByRole('table', {
    name: 'Experiment #1 compared with Experiment #2, yaml'
  });
});

test('an axis is moved and filtered by keyboard, and the address keeps both', async () => {
  const { moved } = show('/compare/1,2?show=trials', ANSWERS);
  const axis = await screen.findByRole('button', {
    name: /^rate, axis 1 of 2/
  });

  fireEvent.keyDown(axis, { key: 'ArrowRight' });
  await waitFor(() =>
    expect(readAddress(moved.current).parameters['axes']).toBe(
      '["metric:loss","hp:rate"]'
    )
  );
  const end = screen.getByRole('slider', { name: 'rate, highest value shown' });
  for (let at = 0; at < 5; at += 1) {
    fireEvent.keyDown(end, { key: 'PageDown' });
  }
  await screen.findByText('2 of 3 trials, filtered by rate');
  fireEvent.click(screen.getByText('Show all trials'));
  await waitFor(() =>
    expect(readAddress(moved.current).parameters['filter']).toBeUndefined()
  );
});

test('what is shown of a plot can be read as a table', async () => {
  HTMLDialogElement.prototype.showModal = () => undefined;
  HTMLDialogElement.prototype.close = () => undefined;
  show('/compare/1,2?show=trials', ANSWERS);
  fireEvent.click(await screen.findByLabelText('More about Scatter'));
  fireEvent.click(screen.getByText('Show as table'));

  expect(
    [...document.querySelectorAll('dialog tbody tr')].map(
      row => row.textContent
    )
  ).toEqual(['#1 trial 10.10.9', '#1 trial 20.30.2', '#2 trial 10.20.5']);
});

function side(id: number, hparams: Record<string, unknown>): Side {
  const shown = trial({ id: id * 10, number: 1, hparams });
  const compared: Compared = {
    id,
    detail: detail({ id, name: `run ${id}`, metric: 'loss' }),
    trials: [shown],
    summaries: []
  };
  return { compared, trial: shown };
}

test('numbers that differ beyond the digits shown differ; missing ones have no text', () => {
  const rows = hparamRows([
    side(1, { rate: 0.100001, deep: { kind: 'a' } }),
    side(2, { rate: 0.100002, only: NaN })
  ]);

  expect(
    rows.map(({ name, texts, differs }) => [name, texts, differs])
  ).toEqual([
    ['deep.kind', ['a', null], true],
    ['rate', ['0.1', '0.1'], true],
    ['only', [null, 'NaN'], true]
  ]);
});

test('of equal values none is the best', () => {
  expect(metricRows([side(1, {}), side(2, {})])[0]!.best.size).toBe(0);
});

test('curves of each experiment have its colour and name, training told apart', () => {
  const sides = [side(1, {}), side(2, {})];
  const charts = comparedCharts(
    sides,
    sides.map(({ compared, trial: shown }) => ({
      id: compared.id,
      trial: shown!,
      clocks: [],
      curves: [
        curve({ trial_id: shown!.id }),
        curve({ trial_id: shown!.id, kind: 'validation', name: 'val_loss' })
      ]
    }))
  );

  expect(charts).toHaveLength(1);
  expect(
    charts[0]!.series.map(({ label, colour }) => `${label}: ${colour}`).sort()
  ).toEqual([
    '#1 run 1, training: 0',
    '#1 run 1: 0',
    '#2 run 2, training: 1',
    '#2 run 2: 1'
  ]);
  expect(new Set(charts[0]!.series.map(({ key }) => key)).size).toBe(4);
});

test('chosen trials are read from an address, damaged ones left out', () => {
  expect(chosenText(readChosen('1:2,x,3:4,5:'))).toBe('1:2,3:4');
});

test('a validation without training stands in the chart of those that have both', () => {
  const sides = [side(1, {}), side(2, {})];
  const charts = comparedCharts(
    sides,
    sides.map(({ compared, trial: shown }, at) => ({
      id: compared.id,
      trial: shown!,
      clocks: [],
      curves: [
        curve({ trial_id: shown!.id, name: 'val_loss' }),
        ...(at === 0 ? [] : [curve({ trial_id: shown!.id })])
      ]
    }))
  );
  expect(
    charts.map(({ title, series }) => [
      title,
      ...series.map(({ label }) => label)
    ])
  ).toEqual([['loss', '#1 run 1', '#2 run 2', '#2 run 2, training']]);
});

// @vitest-environment jsdom
/** The tabs of an experiment's page: trials, checkpoints, logs, code. */
import '../shared/browserParts';

import {
  act,
  cleanup,
  fireEvent,
  screen,
  waitFor,
  within
} from '@testing-library/preact';
import { afterEach, expect, test, vi } from 'vitest';

import type { Host } from '../../src/workspace/app/host';
import { useAddress } from '../../src/workspace/app/context';
import { ExperimentPage } from '../../src/workspace/experiment/page';
import {
  artifact,
  checkpoint,
  detail,
  logLine,
  trial
} from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';
import { showPart } from './shownPart';

afterEach(cleanup);

const PATH = 'master/experiments/7';

function transportOf(change: Record<string, unknown> = {}): ScriptedTransport {
  return new ScriptedTransport({
    [PATH]: detail({
      state: 'COMPLETED',
      bundle_id: 'b',
      ended: '2026-11-20T11:59:00Z'
    }),
    [`${PATH}/trials`]: [
      trial({ state: 'COMPLETED', best_validation: 0.8 }),
      trial({ id: 4, state: 'COMPLETED', hparams: { units: 64 } })
    ],
    [`${PATH}/checkpoints`]: [checkpoint()],
    [`${PATH}/curves`]: [],
    'master/experiments': [],
    'master/trial-summaries': [],
    ...Object.fromEntries(
      [3, 4].flatMap(id =>
        ['logs', 'system', 'media', 'artifacts'].map(part => [
          `master/trials/${id}/${part}`,
          []
        ])
      )
    ),
    ...change
  });
}

function Page() {
  const { place } = useAddress();
  return place.page === 'experiment' ? (
    <ExperimentPage id={place.id} tab={place.tab} />
  ) : (
    <p>{place.page}</p>
  );
}

const show = (
  transport: ScriptedTransport,
  address = '/experiments/7',
  host: Partial<Host> = {}
) => showPart(<Page />, transport, address, host);

test('trials are sorted, columns are chosen, and both stand in the address', async () => {
  const { navigation } = show(transportOf(), '/experiments/7/trials');
  const table = await screen.findByRole('table', { name: 'Trials' });
  expect(within(table).getByRole('button', { name: /^units/ })).toBeTruthy();
  fireEvent.click(within(table).getByRole('button', { name: /^Best/ }));
  fireEvent.click(within(table).getByRole('button', { name: /^Best/ }));

  expect(navigation.current).toBe('/experiments/7/trials?sort=-best');
  const numbers = [...table.querySelectorAll('tbody tr[data-key]')].map(row =>
    row.getAttribute('data-key')
  );
  expect(numbers).toEqual(['4', '3']);

  fireEvent.click(screen.getByRole('button', { name: 'Columns' }));
  fireEvent.click(screen.getByRole('checkbox', { name: 'Restarts' }));
  expect(navigation.current).toContain('columns=');
  expect(within(table).queryByText('Restarts')).toBeNull();

  fireEvent.click(within(table).getByRole('button', { name: 'Trial 4' }));
  expect(navigation.current).toContain('trial=4');
  expect(screen.getByRole('heading', { name: 'Trial 4' })).toBeTruthy();
});

test('a very long name leaves the values of a trial in sight', async () => {
  const name = 'm'.repeat(10_000);
  show(
    transportOf({
      [`${PATH}/trials`]: [trial({ hparams: { [name]: 1 } }), trial({ id: 4 })],
      'master/trial-summaries': [
        {
          experiment_id: 7,
          trial_id: 3,
          hparams: {},
          metrics: [
            { name, kind: 'training', last: 0.5, minimum: 0.5, maximum: 0.5 }
          ]
        }
      ]
    }),
    '/experiments/7/trials?trial=3'
  );

  const metrics = await screen.findByRole('table', {
    name: 'Metrics of trial 3'
  });
  const cell = within(metrics).getByTitle(name);
  expect(cell.textContent).toMatch(/^m+…m+ training$/);
  expect(cell.textContent.length).toBeLessThan(60);
  const facts = screen.getByRole('region', { name: 'Trial 3' });
  expect(
    within(facts)
      .getAllByTitle(name)
      .every(each => each.textContent.length < 60)
  ).toBe(true);
});

test('a file is saved by its own name', async () => {
  const download = vi.fn(() => Promise.resolve());
  show(
    transportOf({
      'master/trials/3/artifacts': [
        artifact({ path: 'plots/loss.bin', size: 1e9 })
      ]
    }),
    '/experiments/7/files?trial=3&file=plots/loss.bin',
    { download }
  );
  fireEvent.click(await screen.findByRole('button', { name: 'Download' }));

  expect(download).toHaveBeenCalledWith(
    '/api/v1/trials/3/artifacts/content?path=plots%2Floss.bin',
    'loss.bin'
  );
});

test('going back leaves the trial that was opened, not the page; sorting is passed over', async () => {
  const { navigation } = show(transportOf(), '/experiments/7');
  void act(() => navigation.open('/experiments/7/trials'));
  const table = await screen.findByRole('table', { name: 'Trials' });
  fireEvent.click(within(table).getByRole('button', { name: 'Trial 4' }));
  fireEvent.click(within(table).getByRole('button', { name: /^Best/ }));
  expect(navigation.current).toBe('/experiments/7/trials?trial=4&sort=best');
  void act(() => navigation.back?.());
  expect(navigation.current).toBe('/experiments/7/trials');
  expect(screen.queryByRole('heading', { name: 'Trial 4' })).toBeNull();
  void act(() => navigation.back?.());
  expect(navigation.current).toBe('/experiments/7');
});

test('of thousands of trials only those in sight are drawn', async () => {
  const trials = Array.from({ length: 3000 }, (_, index) =>
    trial({ id: index + 1, number: index + 1, state: 'COMPLETED' })
  );
  const transport = transportOf({ [`${PATH}/trials`]: trials });
  for (const id of [1, 2997, 2998, 2999, 3000]) {
    ['logs', 'system', 'media', 'artifacts'].forEach(part =>
      transport.answers.set(`master/trials/${id}/${part}`, [])
    );
  }
  show(transport, '/experiments/7/trials');
  const table = await screen.findByRole('table', { name: 'Trials' });

  expect(table.getAttribute('aria-rowcount')).toBe('3001');
  expect(table.querySelectorAll('tbody tr').length).toBeLessThan(100);
});

test('a checkpoint is verified, pinned and deleted', async () => {
  const uuid = checkpoint().uuid;
  const transport = transportOf({
    [`master/checkpoints/${uuid}/verify`]: {
      uuid,
      ok: true,
      files: 2,
      size: 5,
      problem: ''
    },
    [`master/checkpoints/${uuid}`]: checkpoint()
  });
  show(transport, '/experiments/7/checkpoints');
  const open = async () =>
    fireEvent.click(
      await screen.findByRole('button', { name: /^Actions for checkpoint/ })
    );
  await open();
  expect(
    screen.queryByRole('menuitem', { name: 'Load into notebook' })
  ).toBeNull();
  fireEvent.click(screen.getByRole('menuitem', { name: 'Verify' }));
  expect(await screen.findByText('Whole: 2 files')).toBeTruthy();
  await open();
  fireEvent.click(screen.getByRole('menuitem', { name: /^Pin/ }));
  expect(await screen.findByText('pinned')).toBeTruthy();
  await open();
  fireEvent.click(screen.getByRole('menuitem', { name: 'Unpin' }));
  await waitFor(() => expect(screen.queryByText('pinned')).toBeNull());
  await open();
  fireEvent.click(screen.getByRole('menuitem', { name: 'Delete…' }));
  fireEvent.click(
    within(await screen.findByRole('dialog', { hidden: true })).getByText(
      'Delete'
    )
  );
  expect(await screen.findByText('There are no checkpoints yet.')).toBeTruthy();
  expect(transport.requests).toContain(`DELETE master/checkpoints/${uuid}`);
});

test('a log is searched by its address, and the error is jumped to', async () => {
  const transport = transportOf({
    'master/trials/4/logs': [
      'a',
      'Traceback (most recent call last):',
      '  x',
      'KeyError: 1'
    ].map((text, index) => logLine(text, index + 1))
  });
  const { navigation } = show(
    transport,
    '/experiments/7/logs?trial=4&jump=error'
  );
  const log = await screen.findByRole('log', { name: 'Log lines' });
  await waitFor(() =>
    expect(log.querySelector('[data-marked="true"]')?.textContent).toContain(
      'Traceback'
    )
  );
  fireEvent.input(screen.getByRole('searchbox', { name: 'Search the log' }), {
    target: { value: 'key' }
  });

  expect(await screen.findByText('1 of 4 lines')).toBeTruthy();
  expect(log.querySelector('mark')?.textContent).toBe('Key');
  expect(navigation.current).toContain('search=key');
});

test('cells that ran are compared with the notebook as it is now', async () => {
  const transport = transportOf({
    'master/bundles/b': {
      program: {
        kind: 'cells',
        cells: [{ number: 3, source: 'x = 1', cell_id: null }]
      }
    }
  });
  show(transport, '/experiments/7/code?show=diff', {
    notebookCells: () => ['%pylab', 'x = 2']
  });

  expect(await screen.findByText('x = 2')).toBeTruthy();
  expect(screen.queryByText('%pylab')).toBeNull();
});

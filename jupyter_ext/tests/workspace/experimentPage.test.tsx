// @vitest-environment jsdom
/** The experiment's page, as a user meets it. */
import '../shared/browserParts';

import {
  cleanup,
  fireEvent,
  render,
  screen,
  waitFor,
  within
} from '@testing-library/preact';
import { afterEach, expect, test, vi } from 'vitest';

import type { Host } from '../../src/workspace/app/host';
import { useAddress } from '../../src/workspace/app/context';
import { ExperimentPage } from '../../src/workspace/experiment/page';
import { Markdown } from '../../src/workspace/experiment/markdown';
import { RequestError } from '../../src/shared/transport';
import {
  checkpoint,
  detail,
  HOSTILE,
  NASTY,
  trial,
  userError
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

test('the head names the experiment, and tabs have addresses and counts', async () => {
  show(transportOf());

  expect(
    await screen.findByRole('heading', { level: 1, name: 'digits' })
  ).toBeTruthy();
  const tabs = await screen.findByRole('navigation', { name: 'Experiment 7' });
  expect(
    within(tabs).getByText('Trials').closest('a')?.getAttribute('href')
  ).toBe('#/experiments/7/trials');
  expect(within(tabs).getByText('Trials').closest('a')?.textContent).toBe(
    'Trials2'
  );
  expect(within(tabs).queryByText('Report')).toBeNull();
});

test('a tab asks for its data once it is opened, not before', async () => {
  const transport = transportOf({
    'master/bundles/b': {
      program: {
        kind: 'cells',
        cells: [{ number: 3, source: 'x = 1', cell_id: null }]
      }
    }
  });
  const { navigation } = show(transport);
  await screen.findByRole('navigation', { name: 'Experiment 7' });
  expect(transport.requests.join()).not.toContain('bundles');

  navigation.open('/experiments/7/code');

  expect(await screen.findByRole('heading', { name: 'Cell [3]' })).toBeTruthy();
  expect(transport.requests).toContain('GET master/bundles/b');
});

test('a name is edited in its place; Escape leaves it as it was', async () => {
  const transport = transportOf();
  show(transport);
  fireEvent.click(await screen.findByRole('button', { name: 'Edit the name' }));
  const field = screen.getByRole('textbox', { name: 'Name' });
  fireEvent.input(field, { target: { value: 'better' } });
  transport.answers.set(PATH, detail({ name: 'better', state: 'COMPLETED' }));
  fireEvent.keyDown(field, { key: 'Enter' });

  expect(
    await screen.findByRole('heading', { level: 1, name: 'better' })
  ).toBeTruthy();
  expect(transport.bodies).toEqual([{ name: 'better' }]);

  fireEvent.click(screen.getByRole('button', { name: 'Edit the name' }));
  fireEvent.keyDown(screen.getByRole('textbox', { name: 'Name' }), {
    key: 'Escape'
  });
  expect(screen.queryByRole('textbox', { name: 'Name' })).toBeNull();
});

test('a run that fails is told in one box, its traceback folded', async () => {
  const error = userError({ message: NASTY, batch: 3 });
  show(
    transportOf({
      [PATH]: detail({ state: 'ERROR', error, bundle_id: 'b' }),
      [`${PATH}/trials`]: [
        trial({ state: 'ERROR', error }),
        trial({ id: 4, state: 'ERROR', error })
      ]
    })
  );

  const [box, ...others] = await screen.findAllByRole('alert');
  expect(others).toEqual([]);
  expect(box?.textContent).toContain('2 trials failed at batch 3: 3, 4');
  expect(box?.textContent).toContain(NASTY);
  expect(box?.querySelector('img, script')).toBeNull();
  expect(box?.querySelector('details')?.open).toBe(false);
  expect(within(box!).getByText('cell [5], line 3').getAttribute('href')).toBe(
    '#/experiments/7/code?cell=5'
  );
});

test('a stop is asked about, and Cancel cancels', async () => {
  const transport = transportOf({
    [PATH]: detail({ state: 'ACTIVE' }),
    [`${PATH}/stop`]: {}
  });
  show(transport);
  fireEvent.click(await screen.findByRole('button', { name: 'Stop' }));
  const question = await screen.findByRole('dialog', { hidden: true });
  fireEvent.click(within(question).getByText('Cancel'));
  expect(transport.requests).not.toContain(`POST ${PATH}/stop`);

  fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
  fireEvent.click(
    within(await screen.findByRole('dialog', { hidden: true })).getByText(
      'Stop'
    )
  );
  await waitFor(() =>
    expect(transport.requests).toContain(`POST ${PATH}/stop`)
  );
});

test('an experiment that is deleted in another tab is said to be gone, without further requests', async () => {
  const transport = transportOf();
  const { live } = show(transport);
  await screen.findByRole('navigation', { name: 'Experiment 7' });
  await waitFor(() =>
    expect(transport.requests).toContain('GET master/trials/4/artifacts')
  );
  transport.answers.set(
    PATH,
    new RequestError('There is no experiment 7.', 404, 'refused')
  );
  await vi.waitFor(() => {
    (live as unknown as { _tell(changed: ReadonlySet<number>): void })._tell(
      new Set([7])
    );
    expect(screen.getByText('Experiment 7 was deleted.')).toBeTruthy();
  });
  transport.forget();
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(transport.requests).toEqual([]);
});

test('an experiment that never was is said in words', async () => {
  show(
    transportOf({
      [PATH]: new RequestError('There is no experiment 7.', 404, 'refused')
    })
  );

  expect(await screen.findByText('There is no experiment 7.')).toBeTruthy();
  expect(screen.getByText('All experiments').getAttribute('href')).toBe(
    '#/experiments'
  );
});

test('an experiment that cannot be shown leaves a way to the others', async () => {
  show(
    transportOf({
      [PATH]: new RequestError('It does not answer.', 0, 'unreachable')
    })
  );

  expect(
    await screen.findByText('Experiment 7 cannot be shown now.')
  ).toBeTruthy();
  expect(screen.getByText('All experiments').getAttribute('href')).toBe(
    '#/experiments'
  );
});

test('the deletion says what it frees, and what stands in its way', async () => {
  const deletion = {
    experiment_id: 7,
    name: '',
    obstacles: ['Version 1 of digits needs a checkpoint.']
  };
  const transport = transportOf({ [`${PATH}/deletion`]: deletion });
  show(transport);
  fireEvent.click(await screen.findByRole('button', { name: 'More actions' }));
  fireEvent.click(screen.getByRole('menuitem', { name: 'Delete…' }));

  expect(
    await screen.findByText('Version 1 of digits needs a checkpoint.')
  ).toBeTruthy();
  const dialog = screen.getByRole('dialog', { hidden: true });
  expect(within(dialog).getByText<HTMLButtonElement>('Delete').disabled).toBe(
    true
  );
});

test('a fork is refused at the field that the master complains about', async () => {
  const transport = transportOf({
    [PATH]: detail({
      state: 'COMPLETED',
      bundle_id: 'b',
      config: { hyperparameters: { rate: { type: 'const', val: 0.1 } } }
    }),
    'master/configuration-schema': {
      properties: { max_restarts: { type: 'integer', minimum: 0, default: 5 } }
    },
    [`${PATH}/fork`]: new RequestError(
      'The configuration is wrong.',
      400,
      'refused',
      '',
      [
        {
          where: 'hyperparameters.rate',
          what: 'is too large',
          remedy: 'Take less.'
        }
      ]
    )
  });
  const { navigation } = show(transport);
  fireEvent.click(await screen.findByRole('button', { name: 'More actions' }));
  fireEvent.click(screen.getByRole('menuitem', { name: 'Fork with changes…' }));
  const rate = await screen.findByRole('group', { name: 'rate' });
  fireEvent.input(within(rate).getByRole('textbox'), {
    target: { value: '99' }
  });
  const send = () =>
    fireEvent.click(screen.getByText('Fork', { selector: 'button' }));
  await screen.findByText('Training');
  send();

  expect(await within(rate).findByText('is too large Take less.')).toBeTruthy();
  expect(transport.bodies.at(-1)).toEqual({
    config: {},
    hyperparameters: { rate: { type: 'const', val: 99 } }
  });

  transport.answers.set(`${PATH}/fork`, detail({ id: 8 }));
  send();
  await waitFor(() => expect(navigation.current).toBe('/experiments/8'));
});

test('notes that somebody else has changed meanwhile are not overwritten unseen', async () => {
  const transport = transportOf({
    [PATH]: detail({ state: 'COMPLETED', notes: 'old' })
  });
  show(transport, '/experiments/7/notes');
  fireEvent.click(await screen.findByRole('button', { name: 'Edit' }));
  fireEvent.input(screen.getByRole('textbox', { name: 'Notes in Markdown' }), {
    target: { value: 'mine' }
  });
  const refused = new RequestError('Changed meanwhile.', 409, 'refused');
  transport.answers.set(`PATCH ${PATH}`, refused);
  transport.answers.set(PATH, detail({ state: 'COMPLETED', notes: 'theirs' }));
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));

  expect(
    await screen.findByText('Somebody else has changed these notes meanwhile.')
  ).toBeTruthy();
  expect(transport.bodies).toEqual([{ notes: 'mine', notes_before: 'old' }]);
  transport.answers.delete(`PATCH ${PATH}`);
  fireEvent.click(screen.getByRole('button', { name: 'Put both together' }));
  expect(
    screen.getByRole<HTMLTextAreaElement>('textbox', {
      name: 'Notes in Markdown'
    }).value
  ).toBe('theirs\n\nmine');
});

test('Markdown never becomes HTML of its own, and links lead nowhere strange', () => {
  const text = [
    ...HOSTILE,
    NASTY,
    '[x](javascript:alert(1))',
    '![y](http://tracker/p.png)',
    '[ok](https://example.org)',
    '**bold**',
    '- [x] done'
  ].join('\n\n');
  const { container } = render(<Markdown text={text} />);

  expect(container.querySelector('script, iframe, img, svg, style')).toBeNull();
  expect(
    [...container.querySelectorAll('a')].map(each => each.getAttribute('href'))
  ).toEqual(['http://tracker/p.png', 'https://example.org']);
  expect(container.querySelector('strong')?.textContent).toBe('bold');
  expect(
    container.querySelector<HTMLInputElement>('input[type=checkbox]')?.checked
  ).toBe(true);
});

test('the executed notebook is opened where JupyterLab is, and downloaded', async () => {
  const kept = {
    [PATH]: detail({ state: 'COMPLETED', notebook: 'f'.repeat(64) })
  };
  const openNotebook = vi.fn(() => Promise.resolve());
  const download = vi.fn(() => Promise.resolve());
  show(transportOf(kept), '/experiments/7', { openNotebook, download });
  const fact = await screen.findByText('Executed notebook');
  const buttons = within(fact.nextElementSibling as HTMLElement);
  fireEvent.click(buttons.getByRole('button', { name: 'Open' }));
  expect(openNotebook).toHaveBeenCalledWith(7);
  fireEvent.click(buttons.getByRole('button', { name: 'Download' }));
  expect(download).toHaveBeenCalledWith('/api/v1/experiments/7/notebook');
  cleanup();

  show(transportOf(kept));
  await screen.findByRole('button', { name: 'Download' });
  expect(screen.queryByRole('button', { name: 'Open' })).toBeNull();
  cleanup();

  show(transportOf());
  await screen.findByText('Framework');
  expect(screen.queryByText('Executed notebook')).toBeNull();
});

test('what trains in a kernel says so, is stopped and not paused, and is forked where its program was kept', async () => {
  const no_program = 'Cell [2] was changed while it ran.';
  show(
    transportOf({
      [PATH]: detail({ in_kernel: true, bundle_id: null, no_program })
    })
  );

  expect((await screen.findByText('in a kernel')).title).toContain(
    'cannot go on later'
  );
  const actions = within(await screen.findByRole('group', { name: 'Actions' }));
  expect(actions.getByRole('button', { name: 'Stop' })).toBeTruthy();
  expect(actions.queryByRole('button', { name: 'Pause' })).toBeNull();
  fireEvent.click(actions.getByRole('button', { name: 'More actions' }));
  const fork = await screen.findByRole('menuitem', { name: /Fork/ });
  expect(fork.title).toBe(no_program);
  expect(screen.queryByRole('menuitem', { name: /Kill/ })).toBeNull();
});

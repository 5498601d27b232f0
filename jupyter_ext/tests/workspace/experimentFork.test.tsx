// @vitest-environment jsdom
/** A fork with a range: what it searches, and what the form says of it. */
import '../shared/browserParts';

import {
  cleanup,
  fireEvent,
  screen,
  waitFor,
  within
} from '@testing-library/preact';
import { afterEach, expect, test } from 'vitest';

import { ForkDialog } from '../../src/workspace/experiment/forkDialog';
import { detail, view } from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';
import { showPart } from './shownPart';

afterEach(cleanup);

const LENGTH = { $ref: '#/$defs/Length', default: { batches: 100 } };
const searcher = (name: string, more: object = {}) => ({
  type: 'object',
  properties: {
    name: { const: name },
    metric: { type: 'string' },
    max_length: LENGTH,
    ...more
  }
});
const TRIALS = { max_trials: { type: 'integer', minimum: 1 } };
const SCHEMA = {
  $defs: {
    Length: {
      title: 'Length',
      type: 'object',
      properties: { batches: { type: 'integer' } }
    },
    Single: searcher('single'),
    Random: searcher('random', TRIALS),
    Grid: searcher('grid'),
    Asha: searcher('adaptive_asha', {
      ...TRIALS,
      mode: {
        type: 'string',
        enum: ['aggressive', 'standard'],
        default: 'standard'
      }
    }),
    Pbt: searcher('pbt')
  },
  properties: {
    searcher: {
      oneOf: ['Single', 'Random', 'Grid', 'Asha', 'Pbt'].map(name => ({
        $ref: `#/$defs/${name}`
      }))
    }
  }
};

/** The form of an experiment of one trial. */
async function form() {
  const config = {
    searcher: {
      name: 'single',
      metric: 'loss',
      max_length: { batches: 30 }
    },
    hyperparameters: { rate: { type: 'const', val: 0.1 } }
  };
  const transport = new ScriptedTransport({
    'master/configuration-schema': SCHEMA,
    'master/experiments/7/fork': detail({ id: 8 })
  });
  showPart(
    <ForkDialog
      view={view({ experiment: detail({ config }) })}
      onClose={() => undefined}
    />,
    transport
  );
  const chosen = await screen.findByRole<HTMLSelectElement>('combobox', {
    name: 'Searcher'
  });
  return { transport, searcher: chosen };
}

function makeRange(): void {
  const rate = screen.getByRole('group', { name: 'rate' });
  fireEvent.change(within(rate).getByRole('combobox'), {
    target: { value: 'double' }
  });
  for (const [label, value] of [
    ['From', '0.1'],
    ['To', '0.3']
  ]) {
    fireEvent.input(within(rate).getByLabelText(label!), {
      target: { value }
    });
  }
}

const RATE = { type: 'double', minval: 0.1, maxval: 0.3 };

async function sent(transport: ScriptedTransport): Promise<unknown> {
  fireEvent.click(screen.getByRole('button', { name: 'Fork' }));
  await waitFor(() => expect(transport.bodies).toHaveLength(1));
  return transport.bodies[0];
}

test('a first range makes a random search of it, with a number of trials to change', async () => {
  const { transport, searcher: chosen } = await form();
  expect(chosen.value).toBe('single');
  expect([...chosen.options].map(({ value }) => value)).toEqual([
    'single',
    'random',
    'grid',
    'adaptive_asha'
  ]);
  makeRange();

  expect(chosen.value).toBe('random');
  expect(screen.getByText(/the searcher is random now/)).toBeTruthy();
  const trials = screen.getByLabelText<HTMLInputElement>('Max trials');
  expect(trials.value).toBe('10');
  fireEvent.input(trials, { target: { value: '5' } });
  expect(await sent(transport)).toEqual({
    config: { searcher: { name: 'random', max_trials: 5 } },
    hyperparameters: { rate: RATE }
  });
});

test('who stays with a single trial is told that one value is drawn', async () => {
  const { transport, searcher: chosen } = await form();
  makeRange();
  expect(screen.queryByText(/One value will be drawn/)).toBeNull();
  fireEvent.change(chosen, { target: { value: 'single' } });

  const rate = screen.getByRole('group', { name: 'rate' });
  expect(within(rate).getByText(/One value will be drawn/)).toBeTruthy();
  expect(await sent(transport)).toEqual({
    config: {},
    hyperparameters: { rate: RATE }
  });
});

test('another searcher has its own fields, and keeps the metric and the length', async () => {
  const { transport, searcher: chosen } = await form();
  fireEvent.change(chosen, { target: { value: 'adaptive_asha' } });

  expect(screen.getByLabelText<HTMLInputElement>('Metric').value).toBe('loss');
  expect(screen.getByLabelText<HTMLInputElement>('Max length').value).toBe(
    '30'
  );
  expect(screen.getByLabelText<HTMLSelectElement>('Mode').value).toBe(
    'standard'
  );
  expect(await sent(transport)).toEqual({
    config: { searcher: { name: 'adaptive_asha', max_trials: 16 } },
    hyperparameters: {}
  });
});

test('the button says that a fork without changes is unchanged', async () => {
  await form();
  const button = screen.getByRole('button', { name: 'Fork unchanged' });
  makeRange();
  expect(button.textContent).toBe('Fork');
});

// @vitest-environment jsdom
import {
  cleanup,
  fireEvent,
  render,
  screen,
  waitFor
} from '@testing-library/preact';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';

import { HOME } from '../../src/workspace/app/address';
import { Visibility, WorkspaceContext } from '../../src/workspace/app/context';
import type { Host, Navigation } from '../../src/workspace/app/host';
import {
  prioritiesAfter,
  type Queue,
  type QueueEntry,
  startTimes
} from '../../src/workspace/cluster/queueFacts';
import { QueuePage } from '../../src/workspace/cluster/queuePage';
import { slotUses } from '../../src/workspace/cluster/slotFacts';
import { LiveExperiments } from '../../src/workspace/data/liveExperiments';
import { Toasts } from '../../src/workspace/parts/toasts';
import {
  chosen,
  metadataChange,
  metadataText,
  type Model,
  readMetadata
} from '../../src/workspace/registry/modelFacts';
import { ModelsPage } from '../../src/workspace/registry/modelsPage';
import { systemSample } from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';

beforeAll(() => {
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});

afterEach(cleanup);

function shown(page: preact.ComponentChild, transport: ScriptedTransport) {
  const listeners = new Set<() => void>();
  const navigation: Navigation & { current: string } = {
    current: HOME,
    subscribe: listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    open: address => {
      navigation.current = address;
      listeners.forEach(listener => listener());
    },
    href: address => address
  };
  const host: Host = {
    kind: 'page',
    transport,
    navigation,
    download: () => Promise.resolve(),
    setTitle: () => undefined
  };
  const workspace = {
    host,
    visibility: new Visibility(),
    live: new LiveExperiments(transport),
    toasts: new Toasts()
  };
  render(
    <WorkspaceContext.Provider value={workspace}>
      {page}
    </WorkspaceContext.Provider>
  );
  return { navigation, workspace };
}

function entry(change: Partial<QueueEntry> = {}): QueueEntry {
  return {
    id: 1,
    name: 'digits',
    state: 'ACTIVE',
    created: '2026-11-20T11:50:00Z',
    started: null,
    progress: 0,
    seconds_left: null,
    waits_for: '',
    notice: '',
    priority: 42,
    weight: 1,
    max_slots: null,
    slots_per_trial: 1,
    running: 0,
    queued: 1,
    held: [],
    ...change
  };
}

const QUEUE: Queue = {
  policy: 'priority',
  slots: 2,
  free: 0,
  more: 0,
  entries: [
    entry({
      id: 1,
      name: 'long',
      running: 1,
      queued: 0,
      held: ['cpu0'],
      seconds_left: 600
    }),
    entry({
      id: 2,
      name: 'short',
      running: 1,
      queued: 0,
      held: ['cpu1'],
      seconds_left: 120
    }),
    entry({
      id: 3,
      name: 'first',
      waits_for: '1 of 2 slots: #1 and #2 have them'
    }),
    entry({ id: 4, name: 'second', slots_per_trial: 2 })
  ]
};

describe('the queue', () => {
  it('says when those that wait will probably begin', () => {
    expect([...startTimes(QUEUE)]).toEqual([
      [3, 120],
      [4, null] // the first one keeps its slot, nobody knows for how long
    ]);
    const [first, ...rest] = QUEUE.entries;
    const unknown = { ...QUEUE, entries: [first!, ...rest.slice(1)] };
    expect([...startTimes(unknown)]).toEqual([
      [3, 600],
      [4, null]
    ]);
  });

  it('moves one by other priorities, of as few as possible', () => {
    const waiting = [1, 2, 3].map(id => ({ id, priority: 42 }));
    expect([...prioritiesAfter(waiting, 2, 0)!]).toEqual([[3, 41]]);
    expect([...prioritiesAfter(waiting, 0, 1)!]).toEqual([
      [1, 43],
      [3, 44]
    ]);
    const ends = [
      { id: 1, priority: 98 },
      { id: 2, priority: 99 },
      { id: 3, priority: 99 }
    ];
    expect(prioritiesAfter(ends, 0, 1)).toBeNull();
    expect([
      ...prioritiesAfter(
        [
          { id: 1, priority: 1 },
          { id: 2, priority: 1 }
        ],
        1,
        0
      )!
    ]).toEqual([[1, 2]]);
  });

  it('has a row moved up by the keyboard, and a priority typed', async () => {
    const transport = new ScriptedTransport({
      'master/queue': QUEUE,
      'master/experiments/4': {},
      'master/experiments/3': {}
    });
    shown(<QueuePage />, transport);
    const up = await screen.findByRole('button', { name: 'Move second up' });
    expect(screen.getByText(/probably begins in about 2 min/)).toBeTruthy();
    expect(
      screen.getByText(/2 of 2 slots busy; the next is free in about 2 min/)
    ).toBeTruthy();
    fireEvent.click(up);
    await waitFor(() =>
      expect(transport.requests).toContain('PATCH master/experiments/4')
    );
    expect(transport.bodies).toEqual([{ resources: { priority: 41 } }]);
    const field = await screen.findByLabelText(/Priority of first/);
    await waitFor(() => expect(field).toHaveProperty('disabled', false));
    (field as HTMLInputElement).value = '7';
    fireEvent.keyDown(field, { key: 'Enter' });
    await waitFor(() =>
      expect(transport.bodies.at(-1)).toEqual({ resources: { priority: 7 } })
    );
  });

  it('says which priorities there are when another is typed, and keeps what was typed', async () => {
    const transport = new ScriptedTransport({ 'master/queue': QUEUE });
    shown(<QueuePage />, transport);
    const field =
      await screen.findByLabelText<HTMLInputElement>(/Priority of first/);
    field.value = '-5';
    fireEvent.keyDown(field, { key: 'Enter' });
    expect((await screen.findByRole('alert')).textContent).toContain(
      'from 1 to 99'
    );
    expect(field.getAttribute('aria-invalid')).toBe('true');
    expect(field.value).toBe('-5');
    expect(transport.bodies).toEqual([]);
    fireEvent.keyDown(field, { key: 'Escape' });
    await waitFor(() => expect(screen.queryByRole('alert')).toBeNull());
    expect(field.value).toBe('42');
  });

  it('offers no order where priorities do not count', async () => {
    const answer = { ...QUEUE, policy: 'fair_share' };
    shown(<QueuePage />, new ScriptedTransport({ 'master/queue': answer }));
    expect(await screen.findByText(/fair share/)).toBeTruthy();
    expect(screen.queryByRole('button', { name: /Move/ })).toBeNull();
    expect(screen.queryByLabelText(/Priority of/)).toBeNull();
  });
});

it('each slot shows the use of its own process, the last that was measured', () => {
  const slot = (id: string, trial_id: number | null) => ({
    id,
    name: '',
    node: '',
    accelerator: '',
    device: 'cuda' as const,
    trial_id
  });
  const use = (rank: number, time: number, percent: number) =>
    systemSample({
      rank,
      time,
      metrics: { gpu0_percent: percent, gpu0_memory_bytes: 5e9 }
    });
  const uses = slotUses(
    [slot('gpu0', 3), slot('gpu1', 3), slot('gpu2', null)],
    new Map([[3, [use(0, 1, 10), use(0, 2, 90), use(1, 2, 40)]]])
  );
  expect([...uses]).toEqual([
    ['gpu0', { percent: 90, memory: 5e9 }],
    ['gpu1', { percent: 40, memory: 5e9 }]
  ]);
});

function model(change: Partial<Model> = {}): Model {
  return {
    name: 'digits',
    description: '',
    notes: '',
    labels: [],
    metadata: {},
    archived: false,
    versions: 1,
    last_version: 1,
    created: '2026-11-20T11:50:00Z',
    updated: '2026-11-20T11:50:00Z',
    ...change
  };
}

describe('the models', () => {
  const models = [
    model({ name: 'zoo', labels: ['vision'], versions: 9 }),
    model({ name: 'digits', description: 'Handwritten' }),
    model({ name: 'old', archived: true })
  ];

  it('are found by words, labels and archive, and sorted', () => {
    const wish = { text: '', label: '', archived: false, sort: 'name' };
    const names = (change: Partial<typeof wish>) =>
      chosen(models, { ...wish, ...change }).map(({ name }) => name);
    expect(names({})).toEqual(['digits', 'zoo']);
    expect(names({ sort: '-versions' })).toEqual(['zoo', 'digits']);
    expect(names({ text: 'HAND digits' })).toEqual(['digits']);
    expect(names({ label: 'vision' })).toEqual(['zoo']);
    expect(names({ archived: true })).toEqual(['digits', 'old', 'zoo']);
  });

  it('have metadata as lines that people type', () => {
    const metadata = { rate: 0.1, owner: 'me', zip: '0123', list: [1] };
    const text = metadataText(metadata);
    expect(text.split('\n')).toEqual([
      'rate: 0.1',
      'owner: me',
      'zip: 0123',
      'list: [1]'
    ]);
    expect(readMetadata(text)).toEqual(metadata);
    expect(readMetadata('nothing')).toContain('“nothing”');
    expect(metadataChange(metadata, { rate: 0.2, owner: 'me' })).toEqual({
      add_metadata: { rate: 0.2 },
      remove_metadata: ['zip', 'list']
    });
  });

  it('are made in a dialog that stays with its error', async () => {
    const transport = new ScriptedTransport({ 'master/models': models });
    const { navigation } = shown(<ModelsPage />, transport);
    expect(await screen.findByRole('link', { name: 'zoo' })).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'New model' }));
    const create = await screen.findByRole('button', { name: 'Create' });
    expect(create).toHaveProperty('disabled', true);
    fireEvent.input(screen.getByLabelText('Name'), {
      target: { value: 'new' }
    });
    transport.answers.set('master/models', new Error('The name is taken.'));
    fireEvent.click(screen.getByRole('button', { name: 'Create' }));
    expect(await screen.findByText(/The name is taken/)).toBeTruthy();
    transport.answers.set('master/models', model({ name: 'new' }));
    fireEvent.click(screen.getByRole('button', { name: 'Create' }));
    await waitFor(() => expect(navigation.current).toBe('/models/new'));
  });
});

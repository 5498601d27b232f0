import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { slotsKey, slotsOf, SlotsWatch } from '../../src/lab/panel/slots';
import { AWAY, held, ScriptedTransport } from '../shared/scriptedTransport';
import { experiment, listView } from './facts';

const MASTER = 'master/master';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

function watch(
  slots: unknown = { slots: [{ trial_id: 3 }, { trial_id: null }] }
) {
  const transport = new ScriptedTransport({ [MASTER]: slots });
  const found = new SlotsWatch(transport);
  const changed = vi.fn();
  found.onChange = changed;
  return { transport, slots: found, changed };
}

const running = listView({ experiments: [experiment()] });
const two = listView({ experiments: [experiment({ id: 8 }), experiment()] });

describe('the slots', () => {
  it('are not known before they are asked for', () => {
    expect(watch().slots.found).toBeNull();
  });

  it('are asked for at once, and once more when a worker has had time to give its slot back', async () => {
    const { transport, slots, changed } = watch();
    slots.follow(running, true);
    await settle();
    expect(slots.found).toMatchObject({ busy: 1, all: 2 });
    transport.answers.set(MASTER, { slots: [{ trial_id: null }, {}] });
    await vi.advanceTimersByTimeAsync(4000);
    expect(slots.found).toMatchObject({ busy: 0, all: 2 });
    expect(changed).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(transport.requests).toHaveLength(2);
  });

  it('are told by the model and memory of the GPUs', () => {
    const gpu = (id: string, change = {}) => ({
      id,
      device: 'cuda' as const,
      name: 'NVIDIA H100',
      memory: 80e9,
      node: '',
      accelerator: '',
      trial_id: null,
      ...change
    });
    const other = { name: 'NVIDIA A100', memory: 40e9, trial_id: 7 };
    expect(slotsOf([gpu('cuda:0'), gpu('cuda:1', other)])).toEqual({
      busy: 1,
      all: 2,
      gpus: '1 NVIDIA H100 (80.0 GB), 1 NVIDIA A100 (40.0 GB)',
      lines:
        'cuda:0: NVIDIA H100 (80.0 GB), free\ncuda:1: NVIDIA A100 (40.0 GB), trial 7'
    });
    const unknown = gpu('cuda:3', { name: '', memory: null });
    expect(slotsOf([unknown]).gpus).toBe('GPU');
    const cpu = { ...unknown, id: 'cpu:0', device: 'cpu' as const };
    expect(slotsOf([cpu])).toMatchObject({ all: 1, gpus: '', lines: '' });
  });

  it('are asked for once while the same things run', async () => {
    const { transport, slots } = watch();
    for (let progress = 0; progress < 1; progress += 0.1) {
      slots.follow(listView({ experiments: [experiment({ progress })] }), true);
      await settle();
    }
    expect(transport.requests).toHaveLength(1);
    slots.follow(two, true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(transport.requests).toHaveLength(3);
  });

  it('cause no request once the panel is hidden or the connection lost', async () => {
    for (const [view, seen] of [
      [running, false],
      [listView({ connection: { kind: 'resting' } }), true]
    ] as const) {
      const { transport, slots } = watch();
      slots.follow(running, true);
      await settle();
      slots.follow(view, seen);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(transport.requests).toHaveLength(1);
      slots.follow(running, true);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(transport.requests).toHaveLength(3);
    }
  });

  it('of a request that is under way are not asked for a second time', async () => {
    const answer = held<unknown>();
    const { transport, slots } = watch(answer.promise);
    slots.follow(running, true);
    slots.follow(two, true);
    expect(transport.requests).toHaveLength(1);
    answer.release({ slots: [] });
    await settle();
    expect(slots.found).toMatchObject({ busy: 0, all: 0 });
    slots.follow(two, true);
    expect(transport.requests).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(4000);
  });

  it('that cannot be asked for are not known any more', async () => {
    const { transport, slots, changed } = watch();
    slots.follow(running, true);
    await settle();
    transport.answers.set(MASTER, AWAY);
    await vi.advanceTimersByTimeAsync(4000);
    expect(slots.found).toBeNull();
    expect(changed).toHaveBeenCalledTimes(2);
  });

  it('do not depend on what has ended', () => {
    const ended = experiment({
      id: 1,
      state: 'CANCELED',
      ended: '2026-11-20T11:55:00Z'
    });
    const completed = experiment({ id: 2, state: 'COMPLETED' });
    expect(slotsKey(listView({ experiments: [ended, completed] }))).toBe('');
    const stopping = experiment({ id: 3, state: 'STOPPING_CANCELED' });
    expect(slotsKey(listView({ experiments: [stopping] }))).not.toBe('');
  });
});

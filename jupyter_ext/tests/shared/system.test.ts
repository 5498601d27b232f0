// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';

import type { SystemSample } from '../../src/shared/model';
import {
  pointAt,
  systemPanels,
  systemText
} from '../../src/shared/systemFacts';
import { detail, systemSample, trial, view } from './examples';
import { frame, shown } from './shownView';
import { SystemBook } from '../../src/shared/systemBook';
import { AWAY, ScriptedTransport } from './scriptedTransport';

const BEGIN = 1_800_000_000;

/** A sample so many seconds after the first one. */
function at(
  seconds: number,
  metrics: SystemSample['metrics'],
  rank = 0
): SystemSample {
  return systemSample({ time: BEGIN + seconds, metrics, rank });
}

const state = (samples: readonly SystemSample[], trialId = 3) => ({
  system: { trialId, samples }
});

describe('what a trial uses', () => {
  it('has a panel for each quantity that was measured, and no other', () => {
    const panels = systemPanels([
      at(0, { memory_bytes: 4e8 }),
      at(5, {
        cpu_percent: 250,
        memory_bytes: 5e8,
        disk_read_bytes_per_second: 3e6
      }),
      at(10, {
        cpu_percent: 20,
        memory_bytes: 1e8,
        network_sent_bytes_per_second: 2
      })
    ]);
    expect(
      panels.map(({ title, top, format }) => [title, format(top)])
    ).toEqual([
      ['CPU', '250 %'],
      ['Memory', '500 MB'],
      ['Disk', '3 MB/s'],
      ['Network of the machine', '1 kB/s']
    ]);
    expect(panels[0]?.lines).toEqual([
      {
        label: '',
        stretches: [
          [
            [5, 250],
            [10, 20]
          ]
        ]
      }
    ]);
  });

  it('tells GPUs and processes apart', () => {
    const gpus = {
      gpu0_percent: 40,
      gpu1_percent: 60,
      gpu0_memory_bytes: 2e9
    };
    const labels = (samples: SystemSample[]) =>
      systemPanels(samples).map(({ title, lines }) => [
        title,
        ...lines.map(({ label }) => label)
      ]);
    expect(labels([at(0, gpus)])).toEqual([
      ['GPU', 'GPU 0', 'GPU 1'],
      ['GPU memory', '']
    ]);
    expect(labels([at(0, gpus, 1), at(0, { cpu_percent: 1 })])).toEqual([
      ['CPU', 'rank 0'],
      ['GPU', 'rank 1, GPU 0', 'rank 1, GPU 1'],
      ['GPU memory', 'rank 1']
    ]);
  });

  it('has a gap where it waited', () => {
    const seconds = [0, 5, 10, 500, 505, 510, 515];
    const [panel] = systemPanels(
      seconds.map(each => at(each, { cpu_percent: each }))
    );
    const [line] = panel?.lines ?? [];
    expect(line?.stretches.map(each => each.length)).toEqual([3, 4]);
    expect(pointAt(line!, 11)).toEqual([10, 10]);
    expect(pointAt(line!, 1e9)).toEqual([515, 515]);
    expect(pointAt({ label: '', stretches: [] }, 1)).toBeNull();
  });

  it('is said in a few words: as it is now, or over all of the time', () => {
    const samples = [
      at(0, {
        cpu_percent: 100,
        memory_bytes: 3e9,
        gpu0_percent: 10,
        gpu0_memory_bytes: 4e9
      }),
      at(0, { cpu_percent: 50, memory_bytes: 1e9 }, 1),
      at(5, {
        cpu_percent: 200,
        memory_bytes: 2e9,
        gpu0_percent: 90,
        gpu0_memory_bytes: 5e9
      })
    ];
    expect(systemText(samples, false)).toBe(
      'CPU 250 %, memory 3 GB, GPU 90 %, GPU memory 5 GB'
    );
    expect(systemText(samples, true)).toBe(
      'CPU 200 % on average, memory at most 4 GB, GPU 50 % on average, GPU memory at most 5 GB'
    );
    expect(systemText([at(0, { memory_bytes: 1e6 })], false)).toBe(
      'memory 1 MB'
    );
    expect(systemText([], false)).toBe('');
  });
});

describe('the System part of a view', () => {
  const two = [
    at(0, { cpu_percent: 90, memory_bytes: 1e9 }),
    at(10, { cpu_percent: 150, memory_bytes: 2e9 })
  ];

  it('is folded under a cell, says the newest values, and is drawn once it is opened', async () => {
    const { root, text, show } = shown(state(two));
    const part = root.querySelector<HTMLDetailsElement>(
      '.det-section:nth-last-child(2)'
    )!;
    expect(part.open).toBe(false);
    expect(part.querySelector('summary')?.textContent).toBe(
      'System: CPU 150 %, memory 2 GB'
    );
    expect(part.querySelectorAll('svg')).toHaveLength(0);
    part.open = true;
    part.dispatchEvent(new Event('toggle'));
    expect(text('.det-section figcaption')).toBe('CPU|Memory');
    expect(text('.det-section .det-legend b')).toBe('150 %|2 GB');
    expect(part.querySelectorAll('path.det-system-line')).toHaveLength(2);
    await show(state([...two, at(20, { cpu_percent: 10, memory_bytes: 3e9 })]));
    expect(text('.det-section .det-legend b')).toBe('10 %|3 GB');
    expect(part.open).toBe(true);
  });

  it('shows the values under the pointer in all of its panels', async () => {
    const { root, text } = shown(state(two), { page: true });
    await frame();
    const svg = root.querySelector('.det-section svg')!;
    svg.getBoundingClientRect = () => ({ left: 0, width: 300 }) as DOMRect;
    const move = new MouseEvent('pointermove', { bubbles: true, clientX: 80 });
    svg.dispatchEvent(move);
    expect(text('.det-section .det-legend b')).toBe('90 %|1 GB');
    expect(text('.det-section .det-legend-batch')).toBe('1 s|1 s');
    svg.parentElement?.parentElement?.dispatchEvent(new Event('pointerleave'));
    expect(text('.det-section .det-legend b')).toBe('150 %|2 GB');
  });

  it('of less than half a second has no second end that is called 0 s', async () => {
    const metrics = { cpu_percent: 90 };
    const { root, show } = shown(state([at(0, metrics), at(0.3, metrics)]), {
      page: true
    });
    const ends = () =>
      [...root.querySelectorAll('.det-section svg text')].flatMap(each =>
        / s$/.test(each.textContent) ? [each.textContent] : []
      );
    await frame();
    expect(ends()).toEqual(['0 s']);
    await show(state([at(0, metrics), at(2, metrics)]));
    expect(ends()).toEqual(['0 s', '2 s']);
  });

  it('is not there for runs of which nothing was measured', async () => {
    const { root, show } = shown(state([]));
    const part = () =>
      root.querySelector<HTMLElement>('.det-section:nth-last-child(2)')!;
    expect(part().hidden).toBe(true);
    await show({ system: null });
    expect(part().hidden).toBe(true);
    await show(state(two));
    expect(part().hidden).toBe(false);
  });

  it('names its trial where there are several, and sums up one that has ended', async () => {
    const trials = [trial(), trial({ id: 4, state: 'COMPLETED' })];
    const { text } = shown({ ...state(two, 4), trials });
    await frame();
    expect(text('.det-section > summary')).toContain(
      'System of trial 4: CPU 120 % on average, memory at most 2 GB'
    );
  });

  it('tells no more than six lines in words', async () => {
    const samples = Array.from({ length: 9 }, (_, rank) =>
      at(0, { cpu_percent: rank }, rank)
    );
    const { text } = shown(state(samples), { page: true });
    await frame();
    expect(text('.det-section .det-legend')).toContain('rank 5 5 %3 more');
  });
});

describe('samples are asked for', () => {
  const signal = new AbortController().signal;
  const running = view({ experiment: detail(), trials: [trial()] });
  const PATH = 'master/trials/3/system';

  it('of the trial whose log is shown, at most every five seconds', async () => {
    const transport = new ScriptedTransport({
      [PATH]: [systemSample()],
      'master/trials/4/system': []
    });
    const book = new SystemBook(transport);
    const found = await book.newest(running, signal);
    expect(found.system).toEqual({ trialId: 3, samples: [systemSample()] });
    expect(await book.newest(running, signal)).toEqual(found);
    expect(transport.requests).toHaveLength(1);
    await book.newest(running, signal, true);
    expect(transport.requests).toHaveLength(2);
    const log = { trialId: 4, chosen: true, atBegin: true };
    const other = await book.newest({ ...running, log }, signal);
    expect(other.system).toEqual({ trialId: 4, samples: [] });
    expect(await book.newest(view({ trials: [] }), signal)).toEqual(other);
  });

  it('no more of a trial that has ended', async () => {
    const transport = new ScriptedTransport({ [PATH]: [] });
    const book = new SystemBook(transport);
    const over = view({ trials: [trial({ state: 'COMPLETED' })] });
    await book.newest(over, signal);
    await book.newest(over, signal, true);
    expect(transport.requests).toHaveLength(1);
  });

  it('in vain of a master of an earlier version, which is no loss', async () => {
    const transport = new ScriptedTransport();
    const book = new SystemBook(transport);
    const found = await book.newest(running, signal);
    expect(found.system).toEqual({ trialId: 3, samples: [] });
    transport.answers.set(PATH, AWAY);
    await expect(book.newest(running, signal, true)).rejects.toBe(AWAY);
  });
});

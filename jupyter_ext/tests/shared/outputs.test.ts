// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { Medium } from '../../src/shared/model';
import {
  momentAt,
  momentText,
  outputsTrial,
  seriesOf,
  seriesText
} from '../../src/shared/outputs';
import { styleLines } from '../../src/shared/palette';
import { asLine, groupCurves, type Line } from '../../src/shared/plotData';
import { scrolled } from './browserParts';
import { artifact, curve, detail, medium, trial, view } from './examples';
import { frame, shown } from './shownView';

const outputs = (media: Medium[], change = {}) => ({
  outputs: { trialId: 3, chosen: false, media, files: [], ...change }
});

/** Pictures of one name after these batches. */
const pictures = (...batches: number[]) =>
  batches.map(batch => medium({ id: batch, batch }));

describe('what was logged', () => {
  it('is told by name, pictures first, batches ascending', () => {
    const found = seriesOf([
      medium({ id: 1, kind: 'table', name: 'confusion', batch: 30 }),
      ...pictures(20, 10),
      medium({ id: 4, batch: 20, number: 1 }),
      medium({ id: 5, batch: 20, name: 'grid' })
    ]);
    expect(found.map(({ name, kind }) => [name, kind])).toEqual([
      ['samples', 'image'],
      ['grid', 'image'],
      ['confusion', 'table']
    ]);
    const [samples] = found;
    expect(
      samples?.moments.map(({ batch, items }) => [batch, items.length])
    ).toEqual([
      [10, 1],
      [20, 2]
    ]);
    expect(seriesText(found)).toBe('2 pictures, 1 table');
  });

  it('has a moment for each place of the slider', () => {
    const { moments } = seriesOf(pictures(10, 20, 1200))[0]!;
    expect([null, 20, 25, 5].map(batch => momentAt(moments, batch))).toEqual([
      2, 1, 1, 0
    ]);
    expect(momentText(moments, 2)).toBe('batch 1,200 (3 of 3)');
    expect(momentText(moments.slice(0, 1), 0)).toBe('batch 10');
  });

  it('is that of the best trial', () => {
    const trials = [
      trial({ id: 3, best_validation: 0.5 }),
      trial({ id: 4, best_validation: 0.9 })
    ];
    const experiment = detail({ smaller_is_better: false });
    expect(outputsTrial(view({ trials, experiment }))).toBe(4);
    expect(outputsTrial(view({ trials, experiment, trialId: 3 }))).toBe(3);
    expect(outputsTrial(view({ trials: [] }))).toBeNull();
  });
});

const PALETTE = { text: '', grid: '', other: '', trials: ['red'] };

it('metrics that the code logs have charts of their own', () => {
  const logged = { kind: 'logged' as const };
  const groups = groupCurves([
    curve({ name: 'loss' }),
    curve({ ...logged, name: 'loss' }),
    curve({ ...logged, name: 'f1' }),
    curve({ ...logged, name: 'val_f1' })
  ]);
  expect([...groups.keys()]).toEqual(['loss', 'loss (logged)', 'f1']);
  const both = groups.get('f1')!.map(each => asLine(each));
  const labels = (lines: Line[]) =>
    styleLines(lines, [3], null, PALETTE).map(({ label, dashed }) => [
      label,
      dashed
    ]);
  expect(labels(both)).toEqual([
    ['logged', true],
    ['validation', false]
  ]);
  expect(labels(both.slice(0, 1))).toEqual([['logged', false]]);
});

let made = 0;
const revoked: string[] = [];

beforeEach(() => {
  made = 0;
  revoked.length = 0;
  URL.createObjectURL = () => `blob:${(made += 1)}`;
  URL.revokeObjectURL = address => revoked.push(address);
});

/** A view with a gallery whose contents the test has; each card is in sight. */
async function gallery(
  media: Medium[],
  contents: (medium: Medium) => string = ({ id }) => String(id),
  change = {}
) {
  const asked: number[] = [];
  const next = shownWithContents(media, contents, asked, change);
  await frame();
  seeAll(next.root);
  await frame();
  return { ...next, asked };
}

function shownWithContents(
  media: Medium[],
  contents: (medium: Medium) => string,
  asked: number[],
  change: object
) {
  const content = (item: Medium) => {
    asked.push(item.id);
    const text = contents(item);
    return text === ''
      ? Promise.reject(new Error('The master does not answer.'))
      : Promise.resolve(new Blob([text]));
  };
  return shown({ ...outputs(media), ...change }, {}, { content });
}

function seeAll(root: HTMLElement): void {
  root.querySelectorAll('.det-medium').forEach(card => scrolled(card, true));
}

const sliderOf = (root: HTMLElement) =>
  root.querySelector<HTMLInputElement>('.det-slider')!;

async function slide(root: HTMLElement, place: number): Promise<void> {
  const slider = sliderOf(root);
  slider.value = String(place);
  slider.dispatchEvent(new Event('input'));
  await vi.advanceTimersByTimeAsync(100);
}

describe('the gallery', () => {
  it('is not there where nothing was logged', async () => {
    const { root, show } = shown();
    const section = root.querySelector<HTMLElement>('.det-media-grid')!;
    expect(section.closest('details')?.hidden).toBe(true);
    await show(outputs([medium()]));
    expect(section.closest('details')?.hidden).toBe(false);
  });

  it('fetches what is shown alone, and follows the newest', async () => {
    const { root, show, text, asked } = await gallery(pictures(10, 20));
    expect(asked).toEqual([20]);
    expect(text('.det-medium .det-legend-batch')).toBe('batch 20 (2 of 2)');
    const picture = root.querySelector('img')!;
    expect(picture.src).toBe('blob:1');
    expect(picture.alt).toBe('samples after batch 20');
    await show(outputs(pictures(10, 20, 30)));
    expect(asked).toEqual([20, 30]);
    expect(sliderOf(root).value).toBe('2');
    expect(root.querySelector('img')?.alt).toBe('samples after batch 30');
  });

  it('stays where the slider was left, until that is put at the newest', async () => {
    const { root, show, asked } = await gallery(pictures(10, 20, 30));
    await slide(root, 0);
    expect(asked).toEqual([30, 10]);
    await show(outputs(pictures(10, 20, 30, 40)));
    expect(asked).toEqual([30, 10]);
    expect(root.querySelector('img')?.alt).toBe('samples after batch 10');
    expect(sliderOf(root).getAttribute('aria-valuetext')).toBe(
      'batch 10 (1 of 4)'
    );
    await slide(root, 3);
    await show(outputs(pictures(10, 20, 30, 40, 50)));
    expect(root.querySelector('img')?.alt).toBe('samples after batch 50');
    await slide(root, 2);
    expect(asked).toEqual([30, 10, 40, 50]); // that of batch 30 is kept
    expect(root.querySelector('img')?.alt).toBe('samples after batch 30');
  });

  it('fetches nothing that is out of sight, or that the slider passes', async () => {
    const { root, asked } = await gallery(pictures(10, 20, 30, 40));
    asked.length = 0;
    const slider = sliderOf(root);
    for (const place of [2, 1, 0]) {
      slider.value = String(place);
      slider.dispatchEvent(new Event('input'));
    }
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toEqual([10]);
    scrolled(root.querySelector('.det-medium')!, false);
    await slide(root, 1);
    expect(asked).toEqual([10]);
    seeAll(root);
    await frame();
    expect(asked).toEqual([10, 20]);
  });

  it('shows tables, texts and histograms, whatever is in them, as text', async () => {
    const odd = '<img src=x onerror=alert(1)>';
    const rows = Array.from({ length: 60 }, (_, index) => [odd, index / 3]);
    const contents: Record<string, string> = {
      table: JSON.stringify({ columns: [odd, 'n'], rows, total: 1000 }),
      text: odd,
      histogram: JSON.stringify({
        counts: [1, 4, 2],
        edges: [-1, 0, 1, 2],
        not_finite: 3
      })
    };
    const kinds = ['table', 'text', 'histogram'] as const;
    const { root, text } = await gallery(
      kinds.map((kind, id) => medium({ id, kind, name: `my ${kind}` })),
      ({ kind }) => contents[kind] ?? ''
    );
    // A reader of the browser's takes its own time.
    await vi.waitFor(() => {
      expect(root.querySelectorAll('.det-media-item')).toHaveLength(3);
    });
    expect(root.querySelector('img')).toBeNull();
    expect(text('.det-medium th')).toBe(`${odd}|n`);
    expect(root.querySelectorAll('.det-medium tbody tr')).toHaveLength(50);
    expect(text('.det-medium .det-numeric')).toContain('0.3333');
    expect(text('.det-media-table .det-empty')).toBe(
      'The first 50 of 1,000 rows.'
    );
    expect(text('.det-medium pre')).toBe(odd);
    const bars = root.querySelector('.det-medium svg')!;
    expect(bars.getAttribute('aria-label')).toBe(
      'my histogram after batch 10: 7 values from -1 to 2'
    );
    expect(text('.det-media-histogram .det-media-caption')).toBe(
      '7 values from -1 to 2, 3 not finite'
    );
  });

  it('shows all that was logged at once, with captions', async () => {
    const media = [1, 0].map(number =>
      medium({ id: number + 1, number, caption: `class ${number}` })
    );
    const { root, text } = await gallery(media);
    expect(text('.det-media-caption')).toBe('class 0|class 1');
    expect([...root.querySelectorAll('img')].map(({ alt }) => alt)).toEqual([
      'samples after batch 10, 1 of 2: class 0',
      'samples after batch 10, 2 of 2: class 1'
    ]);
    expect(sliderOf(root).hidden).toBe(true);
  });

  it('says why a picture is not there, and tries again', async () => {
    let away = true;
    const { root, text, asked } = await gallery(pictures(10), ({ id }) =>
      away ? '' : String(id)
    );
    expect(text('.det-medium [role=status]')).toBe(
      'The master does not answer.'
    );
    away = false;
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toEqual([10, 10]);
    expect(text('.det-medium [role=status]')).toBe('');
    expect(root.querySelector('img')?.src).toBe('blob:1');
  });

  it('forgets addresses with the view', async () => {
    const { element } = await gallery(pictures(10));
    element.dispose();
    expect(revoked).toEqual(['blob:1']);
  });

  it('has a choice of the trial in a search, and the one name of what it shows', async () => {
    const trials = [trial({ id: 3 }), trial({ id: 4, best_validation: 0.1 })];
    const chosen: Array<number | null> = [];
    const chooseOutputs = (id: number | null) => {
      chosen.push(id);
      return Promise.reject(new Error('The kernel is busy.'));
    };
    const { root, text } = shown(
      { ...outputs([medium()]), trials },
      {},
      { chooseOutputs }
    );
    expect(text('details summary')).toContain('Gallery of trial 3: 1 picture');
    const select = root.querySelector<HTMLSelectElement>(
      'select[aria-label="Trial whose pictures are shown"]'
    )!;
    expect([...select.options].map(option => option.text)).toEqual([
      'Automatic: trial 3',
      'Trial 3: Running',
      'Trial 4: Running'
    ]);
    select.value = '4';
    select.dispatchEvent(new Event('change'));
    await frame();
    expect(chosen).toEqual([4]);
    expect(text('.det-log-tools [role=status]')).toContain(
      'The kernel is busy.'
    );
  });
});

describe('the files', () => {
  const files = [
    artifact({ path: 'out/best.keras' }),
    artifact({ path: 'big.bin', sha256: null, size: 9e9, note: 'too large' })
  ];

  it('are listed, with a link where their content is kept', async () => {
    const { root, text } = shown(
      outputs([], { files }),
      {},
      { fileAddress: ({ path }: { path: string }) => `/files?path=${path}` }
    );
    await frame();
    expect(text('details summary')).toContain('Files: 2 files, 9 GB');
    const links = [...root.querySelectorAll('a')];
    expect(links.map(link => link.getAttribute('href'))).toEqual([
      '/files?path=out/best.keras'
    ]);
    expect(links[0]?.download).toBe('best.keras');
    expect(links[0]?.getAttribute('aria-label')).toBe(
      'Download out/best.keras'
    );
    const rows = [...root.querySelectorAll('[aria-label=Files] tbody tr')];
    expect(rows[1]?.textContent).toBe('big.bin9 GB40too large');
  });

  it('are said to be in the notebook where the page cannot fetch them', () => {
    const { root } = shown(outputs([], { files }));
    expect(root.querySelector('a')).toBeNull();
    expect(root.textContent).toContain('trial.artifacts has the content');
  });
});

import { describe, expect, it } from 'vitest';

import { toCsv } from '../../src/workspace/charts/exportCsv';
import { toSvg } from '../../src/workspace/charts/exportSvg';
import {
  darkness,
  heatMap,
  shareText
} from '../../src/workspace/charts/histograms';
import {
  type ChartData,
  DEFAULT_SETTINGS,
  type Series
} from '../../src/workspace/charts/series';
import { NASTY } from '../shared/examples';

function series(change: Partial<Series> = {}): Series {
  const values = change.values ?? [3, 2, 1];
  return {
    key: 'a',
    label: 'loss',
    colour: 0,
    x: { batch: values.map((_, at) => at + 1) },
    values,
    ...change
  };
}

function chart(name: string, change: Partial<Series> = {}): ChartData {
  return {
    key: name,
    title: name,
    series: [series({ key: `k ${name}`, ...change })]
  };
}

describe('files', () => {
  const props = {
    ...chart('loss & <more>', {
      label: NASTY,
      band: { minimum: [1, 1, 1], maximum: [4, 4, 4] }
    }),
    settings: DEFAULT_SETTINGS
  };

  it('have all values, and no formula', () => {
    const csv = toCsv([
      series({ label: '=1+1', values: [1, null, Infinity] }),
      series({ label: 'a "b", c', x: { batch: [7], time: [0] }, values: [2] })
    ]);
    expect(csv.split('\n')).toEqual([
      'series,batch,time,value',
      "'=1+1,1,,1",
      "'=1+1,2,,",
      "'=1+1,3,,Infinity",
      '"a ""b"", c",7,1970-01-01T00:00:00.000Z,2',
      ''
    ]);
  });

  it('say of which times they are worked out between reports', () => {
    const x = { batch: [1], time: [1.5], relative: [1 / 3] };
    const metric = series({
      x,
      values: [2],
      source: { trialId: 3, kind: 'training', name: 'loss' }
    });
    expect(toCsv([metric]).split('\n').slice(0, 2)).toEqual([
      'series,batch,time (interpolated),seconds (interpolated),value',
      expect.stringContaining(',1,1970-01-01T00:00:01.500Z,0.333,2')
    ]);
    const measured = series({ x, values: [2] });
    expect(toCsv([measured])).toMatch(/^series,batch,time,seconds,value\n/);
  });

  it('are vectors with title, axes and legend, in which names are text', () => {
    const palette = {
      text: '#111',
      grid: '#ddd',
      other: '#999',
      trials: ['#0072b2']
    };
    const { text } = toSvg(
      props,
      null,
      { ...palette, surface: '#fff', strong: '#000' },
      { width: 600, height: 200 }
    );
    expect(text).toContain('loss &amp; &lt;more&gt;');
    expect(text).toContain('>batch</text>');
    expect(text).not.toContain('<img');
    expect(text).not.toMatch(/NaN|undefined/);
    expect(text.match(/<path /g)).toHaveLength(2);
  });
});

describe('histograms over batches', () => {
  it('are put on common bins', () => {
    const map = heatMap(
      [1, 2],
      [
        { counts: [4], edges: [0, 2] },
        { counts: [1, 3], edges: [2, 3, 4] }
      ],
      4
    );
    expect(map).toMatchObject({ low: 0, high: 4, most: 0.75 });
    expect(map?.shares).toEqual([
      [0.5, 0.5, 0, 0],
      [0, 0, 0.25, 0.75]
    ]);
    expect(heatMap([1], [{}])).toBeNull();
  });

  it('have a scale of colours with counts, where they are the same in each batch', () => {
    const content = { counts: [1500, 500], edges: [0, 1, 2] };
    const map = heatMap([1, 2], [content, content], 2)!;
    expect(shareText(map, map.most)).toBe('1,500 (75 %)');
    expect(shareText(map, 0)).toBe('0 (0 %)');
    const other = heatMap([1, 2], [content, { ...content, counts: [1, 1] }], 2);
    expect(shareText(other!, 0.125)).toBe('13 %');
    expect([0, 0.25, 1].map(share => darkness(share, 1))).toEqual([0, 0.5, 1]);
    expect(darkness(1e-9, 1)).toBeGreaterThan(0.01);
  });
});

// @vitest-environment jsdom
import '../shared/browserParts';
import { describe, expect, it } from 'vitest';

import { ExperimentListModel } from '../../src/lab/panel/listModel';
import { rowOf } from '../../src/lab/panel/rows';
import { experiment, NOW } from './facts';

describe('the part of the list that is drawn', () => {
  const plain = rowOf(experiment(), NOW);
  const failed = { ...plain, problem: 'ValueError: bad shape' };
  const rows = [plain, failed, plain, plain];

  function model(of: typeof rows, top: number, height: number) {
    const made = new ExperimentListModel(() => {
      throw new Error('Nothing is drawn to be measured.');
    });
    made.rows = of;
    made.scrollOffset = top;
    made.height = height;
    return made;
  }
  const seen = (of: typeof rows, top: number, height: number) =>
    model(of, top, height).getRangeToRender()?.slice(2);

  it('knows where each row begins', () => {
    const made = model(rows, 0, 100);
    expect(rows.map((_, at) => made.getSpan(at, at))).toEqual([
      [0, 48],
      [48, 66],
      [114, 48],
      [162, 48]
    ]);
    expect(made.getEstimatedTotalSize()).toBe(210);
    expect(model([], 0, 100).getEstimatedTotalSize()).toBe(0);
  });

  it('is what is seen, and some more', () => {
    expect(seen(rows, 50, 60)).toEqual([1, 1]);
    expect(seen(rows, 50, 65)).toEqual([1, 2]);
    expect(model(rows, 50, 60).getRangeToRender()?.slice(0, 2)).toEqual([0, 3]);
    expect(seen([], 0, 300)).toEqual([-1, -1]);
  });

  it('stays small for 500 rows', () => {
    const many = Array.from({ length: 500 }, () => plain);
    const [first, last] = model(many, 12_000, 600).getRangeToRender()!;
    expect(first).toBeGreaterThan(240);
    expect(last + 1 - first).toBeLessThan(25);
  });

  it('is scrolled no further than is needed', () => {
    const to = (row: number, top: number) =>
      model(rows, top, 100).getOffsetForIndexAndAlignment(row);
    expect(to(0, 60)).toBe(0);
    expect(to(3, 0)).toBe(110);
    expect(to(1, 40)).toBe(40);
  });

  it('follows rows that come, go, and change in height', () => {
    const made = model([plain, ...rows, plain], 200, 100);
    expect(made.getEstimatedTotalSize()).toBe(306);
    made.rows = [failed, plain];
    expect(made.getRangeToRender()?.slice(2)).toEqual([1, 1]);
    expect(made.getEstimatedTotalSize()).toBe(114);
    made.rows = rows;
    expect(made.getSpan(3, 3)).toEqual([162, 48]);
  });
});

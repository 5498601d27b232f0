// @vitest-environment jsdom
import { render } from 'preact';
import { afterEach, expect, test } from 'vitest';

import type { MasterInfo } from '../../src/shared/model';
import { Nodes } from '../../src/workspace/cluster/nodes';

afterEach(() => {
  document.body.replaceChildren();
});

function shown(info: Partial<MasterInfo>): string[][] {
  render(<Nodes info={info as MasterInfo} />, document.body);
  return [...document.querySelectorAll('tbody tr')].map(row =>
    [...row.querySelectorAll('td')].map(cell => cell.textContent ?? '')
  );
}

test('machines are listed with what is free and what is wrong', () => {
  const machine = { address: '', python: '', version: '', labels: {} };
  const slot = { device: 'cuda' as const, accelerator: 'H100', name: '' };
  expect(
    shown({
      nodes: [
        {
          ...machine,
          id: '1',
          name: 'gpu-1',
          slots: 4,
          free: 3,
          device: 'cuda',
          accelerator: 'H100',
          labels: { zone: 'north' },
          trouble: ''
        },
        {
          ...machine,
          id: '2',
          name: 'head',
          slots: 0,
          free: 0,
          device: 'cpu',
          accelerator: '',
          trouble: 'Python is 3.9 there.'
        }
      ],
      slots: [
        { ...slot, id: 'gpu-1/0', node: 'gpu-1', trial_id: 3 },
        { ...slot, id: 'gpu-1/1', node: 'gpu-1', trial_id: null }
      ] as MasterInfo['slots']
    })
  ).toEqual([
    ['gpu-1', 'H100', '4', '2', 'zone=north', 'ready'],
    ['head', 'CPU', '0', '0', '', 'Python is 3.9 there.']
  ]);
});

test('a cluster without machines says so', () => {
  shown({ nodes: [], slots: [] });
  expect(document.body.textContent).toBe('The cluster has no machine now.');
});

// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';

import { slotsOf } from '../../src/lab/panel/slots';
import { failuresOf } from '../../src/shared/facts';
import { styleLines } from '../../src/shared/palette';
import { asLine } from '../../src/shared/plotData';
import { CheckpointsSection, TrialsSection } from '../../src/shared/sections';
import { TrialChoice } from '../../src/shared/trialChoice';
import { checkpoint, curve, trial, userError, view } from './examples';

const first = trial({ id: 44, number: 1 });
const second = trial({ id: 45, number: 2, state: 'ERROR' });
const shown = view({ trials: [first, second] });

describe('the trials of an experiment', () => {
  it('are told by their numbers inside it, in the table and where one is chosen', () => {
    const table = new TrialsSection(() => undefined);
    table.update(shown);
    const cells = [...table.root.querySelectorAll('tbody tr')].map(
      row => row.querySelector('td')?.textContent
    );
    expect(cells.sort()).toEqual(['1', '2']);
    const choice = new TrialChoice('Trial', () => undefined);
    choice.show(shown, { trialId: 45, chosen: false });
    const names = [...choice.root.options].map(({ text }) => text);
    expect(names[0]).toBe('Automatic: trial 2');
    expect(names[1]).toContain('Trial 1: ');
    expect([...choice.root.options].map(({ value }) => value)).toEqual([
      '',
      '44',
      '45'
    ]);
  });

  it('are told so where they fail, and by the legend of their curves', () => {
    const failed = { ...second, error: userError() };
    const [failure] = failuresOf(view({ trials: [first, failed] }));
    expect(failure?.headline).toContain('Trial 2 failed');
    const lines = [asLine(curve({ trial_id: 45 }))];
    const palette = { ink: '', grid: '', other: '', trials: ['a', 'b'] };
    const numbers = new Map([
      [44, 1],
      [45, 2]
    ]);
    const [style] = styleLines(
      lines,
      [44, 45],
      null,
      palette as never,
      null,
      id => numbers.get(id) ?? id
    );
    expect(style?.label).toBe('trial 2');
  });

  it('are told so beside checkpoints and slots; of an older master, by their ids', () => {
    const section = new CheckpointsSection(true);
    section.update(
      view({
        trials: [second],
        checkpoints: [checkpoint({ trial_id: 45, trial_number: 2 })]
      })
    );
    expect(section.root.querySelectorAll('td')[1]?.textContent).toBe('2');
    const slot = {
      id: 'cuda:0',
      device: 'cuda' as const,
      name: 'GPU',
      node: '',
      accelerator: ''
    };
    const held = { ...slot, trial_id: 45, experiment_id: 7, trial_number: 2 };
    expect(slotsOf([held]).lines).toContain('trial 7.2');
    expect(slotsOf([{ ...slot, trial_id: 45 }]).lines).toContain('trial 45');
  });
});

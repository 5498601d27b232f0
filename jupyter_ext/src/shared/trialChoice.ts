/** Chooses the trial of which something is shown; by itself it is one that the view says. */

import { make, setText } from './dom';
import type { ExperimentView } from './model';
import { trialStateText } from './texts';
import { numberOf, trialNumber } from './trialNumbers';

/** What is shown, and whether somebody has chosen it. */
export interface ChosenTrial {
  readonly trialId: number | null;
  readonly chosen: boolean;
}

export class TrialChoice {
  readonly root: HTMLSelectElement;

  /** `onChoose` is told the trial, null for the automatic choice. */
  constructor(label: string, onChoose: (trialId: number | null) => void) {
    this.root = make('select', 'det-select', { 'aria-label': label });
    this.root.addEventListener('change', () => onChoose(this.value));
  }

  /** The trial that is chosen, null for the automatic choice. */
  get value(): number | null {
    const { value } = this.root;
    return value === '' ? null : Number(value);
  }

  /** Offer the trials of a view; `state` is null where there is nothing to choose. Returns whether there is. */
  show(view: ExperimentView, state: ChosenTrial | null): boolean {
    const chooses =
      state !== null && view.trials.length > 1 && view.trialId === 0;
    this.root.hidden = !chooses;
    if (!chooses) {
      return false;
    }
    const automatic = state.chosen
      ? ''
      : `: trial ${state.trialId === null ? '' : numberOf(view.trials, state.trialId)}`;
    const names = [
      ['', `Automatic${automatic}`],
      ...view.trials.map(trial => [
        String(trial.id),
        `Trial ${trialNumber(trial)}: ${trialStateText(trial, view.experiment).word}`
      ])
    ];
    names.forEach(([value = '', name = ''], index) => {
      const option =
        this.root.options[index] ??
        this.root.appendChild(make('option', '', { value }));
      option.value = value;
      setText(option, name);
    });
    this.root.value = state.chosen ? String(state.trialId) : '';
    return true;
  }
}

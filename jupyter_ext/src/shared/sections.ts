/** Trials, checkpoints and errors: the lower part of an experiment's view. */

import { button, make, setText } from './dom';
import {
  bestCheckpoint,
  bestFirst,
  bestTrial,
  checkpointMetric,
  failuresOf,
  slotsText
} from './facts';
import { formatBytes, formatValue, shortUuid } from './format';
import type { HparamTexts } from './hparams';
import { hparamTexts } from './hparams';
import type { Column } from './keyedTable';
import { KeyedTable } from './keyedTable';
import type { Checkpoint, ExperimentView, Trial } from './model';
import { isTerminal } from './model';
import { TEXTS, trialStateText } from './texts';
import { trialNumber } from './trialNumbers';

/** A part that folds, with a word for when there is nothing in it. */
export class Section {
  readonly root: HTMLDetailsElement;
  private readonly _summary = make('summary');
  private readonly _empty = make('p', 'det-empty');

  /** `tools` are seen whether there is anything in the body or not. */
  constructor(
    private readonly _body: HTMLElement,
    open: boolean,
    ...tools: HTMLElement[]
  ) {
    this.root = make(
      'details',
      'det-section',
      {},
      this._summary,
      ...tools,
      this._empty,
      _body
    );
    this.root.open = open;
  }

  /** Show a title and the body, or a word for why there is nothing in it. */
  show(title: string, empty: string | null): void {
    setText(this._summary, title);
    setText(this._empty, empty ?? '');
    this._empty.hidden = empty === null;
    this._body.hidden = empty !== null;
  }
}

export function ended(view: ExperimentView): boolean {
  return view.experiment !== null && isTerminal(view.experiment.state);
}

/** Place of the column with the best values. */
const BEST = 3;

export class TrialsSection {
  readonly root: HTMLElement;
  private readonly _section: Section;
  private readonly _table: KeyedTable<Trial>;
  private readonly _common = make('div', 'det-common');
  private _best: number | null = null;
  private _experiment: ExperimentView['experiment'] = null;
  private _hparams: HparamTexts = hparamTexts([]);

  /** `onHighlight` is told the trial whose row is pointed at or held, null when it is none any more. */
  constructor(onHighlight: (trialId: number | null) => void) {
    const state = (trial: Trial) => trialStateText(trial, this._experiment);
    const columns: Array<Column<Trial>> = [
      {
        title: 'Trial',
        text: trial => String(trialNumber(trial)),
        value: trialNumber,
        numeric: true
      },
      {
        title: 'State',
        text: trial =>
          [
            state(trial).word,
            slotsText(trial, this._experiment),
            restartsText(trial),
            trial.notice
          ]
            .filter(Boolean)
            .join(', '),
        tone: trial => state(trial).tone
      },
      {
        title: 'Batches',
        text: trial => `${trial.batches} / ${trial.target_batches}`,
        value: trial => trial.batches,
        numeric: true
      },
      {
        title: 'Best',
        text: trial => formatValue(trial.best_validation),
        value: trial => trial.best_validation,
        numeric: true
      },
      {
        title: 'Hyperparameters',
        text: trial => this._hparams.own.get(trial.id) || '—',
        tip: trial => this._hparams.own.get(trial.id) ?? ''
      }
    ];
    this._table = new KeyedTable({
      label: 'Trials',
      key: trial => String(trial.id),
      columns,
      emphasised: trial => trial.id === this._best,
      onHighlight: key => onHighlight(key === null ? null : Number(key))
    });
    const body = make('div', '', {}, this._table.root, this._common);
    this._section = new Section(body, true);
    this.root = this._section.root;
  }

  update(view: ExperimentView): void {
    // The facts of a single trial stand in the header.
    this.root.hidden =
      view.trialId > 0 ||
      (view.trials.length === 1 && view.experiment?.trials === 1);
    this._best = bestTrial(view)?.id ?? null;
    this._experiment = view.experiment;
    this._section.show(
      `Trials (${view.trials.length})`,
      view.trials.length ? null : TEXTS.noTrials
    );
    this._hparams = hparamTexts(view.trials);
    const { common } = this._hparams;
    setText(this._common, common && `In all trials: ${common}`);
    const metric = view.experiment?.metric ?? '';
    this._table.setTitle(BEST, `Best ${metric}`.trim());
    this._table.setItems(bestFirst(view));
  }
}

function restartsText(trial: Trial): string {
  return trial.restarts > 0
    ? `${trial.restarts} restart${trial.restarts > 1 ? 's' : ''}`
    : '';
}

/** Place and title of the column with what a checkpoint has come to. */
const METRIC = 3;
const VALIDATION = 'Validation';

export class CheckpointsSection {
  readonly root: HTMLElement;
  private readonly _section: Section;
  private readonly _table: KeyedTable<Checkpoint>;
  private _metric = '';
  private _best: string | null = null;

  constructor(open: boolean, onLoad?: (checkpoint: Checkpoint) => void) {
    const columns: Array<Column<Checkpoint>> = [
      {
        title: 'Checkpoint',
        text: each => shortUuid(each.uuid),
        tip: each => each.uuid
      },
      {
        title: 'Trial',
        text: each => String(each.trial_number || each.trial_id),
        numeric: true
      },
      { title: 'Batch', text: each => String(each.batch), numeric: true },
      {
        title: VALIDATION,
        text: each => this._metricText(each),
        value: each => this._metricValue(each)
      },
      {
        title: 'Size',
        text: each => formatBytes(each.size),
        value: each => each.size,
        numeric: true
      }
    ];
    this._table = new KeyedTable({
      label: 'Checkpoints',
      key: each => each.uuid,
      columns,
      emphasised: each => each.uuid === this._best,
      ...(onLoad
        ? { action: (each: Checkpoint) => loadButton(each, onLoad) }
        : {})
    });
    this._section = new Section(this._table.root, open);
    this.root = this._section.root;
  }

  update(view: ExperimentView): void {
    this._metric = view.experiment?.metric ?? '';
    const validates = view.experiment?.validates ?? true;
    this._table.setTitle(METRIC, validates ? VALIDATION : 'Metric');
    const found = view.checkpoints.filter(each => each.state === 'COMPLETED');
    const newestFirst = found.toSorted((one, other) =>
      other.created.localeCompare(one.created)
    );
    const smaller = view.experiment?.smaller_is_better ?? true;
    this._best =
      found.length > 1
        ? (bestCheckpoint(found, this._metric, smaller)?.uuid ?? null)
        : null;
    const empty = ended(view) ? TEXTS.noCheckpointsEnded : TEXTS.noCheckpoints;
    this._section.show(
      `Checkpoints (${found.length})`,
      found.length > 0 ? null : empty
    );
    this._table.setItems(newestFirst);
  }

  private _metricValue(checkpoint: Checkpoint): number | null {
    const value = checkpointMetric(checkpoint, this._metric)?.value;
    return value === undefined || value === null ? null : Number(value);
  }

  private _metricText(checkpoint: Checkpoint): string {
    const found = checkpointMetric(checkpoint, this._metric);
    const best = checkpoint.uuid === this._best ? ' (best)' : '';
    return found ? `${found.name} ${formatValue(found.value)}${best}` : '—';
  }
}

function loadButton(
  checkpoint: Checkpoint,
  onLoad: (checkpoint: Checkpoint) => void
): HTMLElement {
  const element = button('det-button', 'Load into notebook', () =>
    onLoad(checkpoint)
  );
  element.setAttribute(
    'aria-label',
    `Load checkpoint ${shortUuid(checkpoint.uuid)} into notebook`
  );
  return element;
}

export class FailureSection {
  readonly root = make('div', 'det-failures');
  private _shown = '';

  update(view: ExperimentView): void {
    const failures = failuresOf(view);
    const key = JSON.stringify(failures);
    if (key === this._shown) {
      return;
    }
    this._shown = key;
    const parts = failures.map(failure => {
      const [where] = failure.headline.split(': ');
      const traceback = make(
        'pre',
        'det-traceback',
        { tabindex: '0', role: 'region', 'aria-label': `Traceback: ${where}` },
        failure.traceback
      );
      return make(
        'div',
        'det-failure',
        { role: 'alert' },
        make('b', '', {}, failure.headline),
        ...(failure.traceback === ''
          ? []
          : [
              make(
                'details',
                'det-failure-more',
                {},
                make('summary', '', {}, 'Traceback'),
                traceback
              )
            ])
      );
    });
    this.root.replaceChildren(...parts);
  }
}

/** Title, state, progress and what can be done: the upper part of an experiment's view. */

import { button, make, setName, setText } from './dom';
import {
  formatCount,
  formatDuration,
  formatLeft,
  formatPercent,
  formatValue,
  wholePercent
} from './format';
import { formatHparams } from './hparams';
import type {
  Action,
  ExperimentDetail,
  ExperimentSource,
  ExperimentView,
  Trial
} from './model';
import { isTerminal } from './model';
import { bestTrial, progressOf, shownTrial, slotsText } from './facts';
import type { StateText } from './texts';
import {
  connectionText,
  experimentStateText,
  TEXTS,
  trialStateText
} from './texts';
import { numberOf, trialNumber } from './trialNumbers';

type Confirm = (question: string, action: string) => Promise<boolean>;

export class Header {
  readonly root = make('header', 'det-header');
  private readonly _title = make('h3', 'det-title');
  private readonly _name = make('span', 'det-name');
  private readonly _badge = make('span', 'det-badge', { role: 'status' });
  private readonly _bar = make('div', 'det-bar', {
    role: 'progressbar',
    'aria-valuemin': '0',
    'aria-valuemax': '100',
    'aria-label': 'Progress'
  });
  private readonly _fill = make('div', 'det-bar-fill');
  private readonly _facts = make('div', 'det-facts');
  private readonly _actions: Actions;

  /** Offer to end the waiting of a cell; null where none waits. */
  set leave(leave: (() => void) | null) {
    this._actions.leave = leave;
  }

  constructor(source: ExperimentSource, confirm?: Confirm) {
    this._actions = new Actions(source, confirm);
    this._bar.append(this._fill);
    const line = make(
      'div',
      'det-header-line',
      {},
      this._title,
      this._name,
      this._badge
    );
    line.append(this._actions.buttons);
    this.root.append(
      line,
      this._actions.question,
      this._actions.problem,
      this._bar,
      this._facts
    );
  }

  update(view: ExperimentView): void {
    const { experiment } = view;
    const trial = shownTrial(view);
    setText(this._title, titleOf(view));
    if (!experiment) {
      setText(
        this._facts,
        ['lost', 'missing'].includes(view.connection.kind) ? '' : TEXTS.loading
      );
      this._bar.hidden = true;
      return;
    }
    setName(this._name, nameOf(view, experiment));
    const state = trial
      ? trialStateText(trial, experiment)
      : experimentStateText(experiment);
    this._showState(state);
    this._showProgress(view, experiment);
    const facts = factsOf(view, experiment, trial);
    setText(this._facts, facts.filter(Boolean).join(' · '));
    this._facts.title = experiment.in_kernel ? TEXTS.noPause : '';
    this._actions.update(experiment, view);
  }

  private _showState(state: StateText): void {
    setText(
      this._badge,
      state.note ? `${state.word}, ${state.note}` : state.word
    );
    this._badge.dataset.tone = state.tone;
  }

  private _showProgress(
    view: ExperimentView,
    experiment: ExperimentDetail
  ): void {
    const fraction = progressOf(view);
    this._bar.hidden = isTerminal(experiment.state);
    this._fill.style.width = `${fraction * 100}%`;
    this._bar.setAttribute('aria-valuenow', String(wholePercent(fraction)));
    this._bar.dataset.tone =
      experiment.state === 'PAUSED' ? 'waiting' : 'active';
  }
}

const NAMES: Readonly<Record<Action, string>> = {
  pause: 'Pause',
  resume: 'Resume',
  stop: 'Stop',
  kill: 'Kill'
};

/** Pause and Resume; after a question Stop, and Kill once that takes its time. */
class Actions {
  readonly buttons = make('div', 'det-actions', {
    role: 'group',
    'aria-label': 'Actions'
  });
  readonly question = make('div', 'det-question', { role: 'group' });
  readonly problem = make('div', 'det-notice', {
    role: 'alert',
    'data-tone': 'bad'
  });
  private readonly _pause = button(
    'det-button',
    'Pause',
    () => void this._ask('pause')
  );
  private readonly _resume = button(
    'det-button',
    'Resume',
    () => void this._ask('resume')
  );
  private readonly _stop = button(
    'det-button',
    'Stop',
    () =>
      void this._askFirst(
        'stop',
        TEXTS[
          this._source.view.experiment?.in_kernel
            ? 'confirmStopHere'
            : 'confirmStop'
        ],
        this._stop
      )
  );
  private readonly _kill = button(
    'det-button',
    'Kill',
    () => void this._askFirst('kill', TEXTS.confirmKill, this._kill)
  );
  private readonly _leave = button('det-button', TEXTS.leave, () =>
    this.leave?.()
  );
  private _asking = false;
  /** Ends the waiting of the cell above, while that waits. */
  leave: (() => void) | null = null;
  /** The button that was pressed, until the focus is elsewhere. */
  private _pressed: HTMLElement | null = null;
  /** What failed, and the sentences that say why. */
  private _failed: { action: Action; why: readonly string[] } | null = null;
  private _state = '';
  private _live = false;

  constructor(
    private readonly _source: ExperimentSource,
    private readonly _confirm?: Confirm
  ) {
    this._leave.title = TEXTS.leaveHint;
    this.buttons.append(...this._all(), this._leave);
    this.buttons.hidden = this.question.hidden = this.problem.hidden = true;
  }

  update(experiment: ExperimentDetail, view: ExperimentView): void {
    const ended = isTerminal(experiment.state);
    const words = view.trialId > 0 ? ' experiment' : '';
    const { in_kernel: inKernel } = experiment;
    this.buttons.hidden = ended;
    // What trains in a kernel cannot go on later.
    this._pause.hidden = experiment.state !== 'ACTIVE' || inKernel;
    this._stop.title = inKernel ? TEXTS.stopsHere : '';
    this._resume.hidden = experiment.state !== 'PAUSED';
    this._leave.hidden = this.leave === null;
    const stopping = experiment.state.startsWith('STOPPING');
    this._kill.hidden = experiment.state !== 'STOPPING_CANCELED' || inKernel;
    const disabled = this._asking || stopping;
    for (const each of this._all()) {
      each.disabled = each === this._kill ? this._asking : disabled;
    }
    setText(this._pause, `Pause${words}`);
    setText(this._resume, `Resume${words}`);
    setText(this._stop, `Stop${words}`);
    setText(this._kill, `Kill${words}`);
    if (ended || stopping !== this._state.startsWith('STOPPING')) {
      this.question.hidden = true;
    }
    const live = view.connection.kind === 'live';
    if (experiment.state !== this._state || (live && !this._live)) {
      this._failed = null; // it is no longer about what is seen
    }
    this._state = experiment.state;
    this._live = live;
    this._showProblem(view);
    if (!disabled) {
      this._keepFocus();
    }
  }

  private _all(): HTMLButtonElement[] {
    return [this._pause, this._resume, this._stop, this._kill];
  }

  /** A browser takes the focus from what is disabled or hidden: who presses Pause is then at Resume. */
  private _keepFocus(): void {
    const { activeElement: active, body } = document;
    if (active !== body && active !== this._pressed) {
      this._pressed = null;
    } else if (this._pressed) {
      const next = this._pause.hidden ? this._resume : this._pause;
      (this._pressed.hidden ? next : this._pressed).focus();
    }
  }

  /** What the notice of a lost connection says already is not said twice. */
  private _showProblem({ connection }: ExperimentView): void {
    const said = connectionText(connection);
    const { action, why = [] } = this._failed ?? {};
    const rest = why.filter(sentence => !said.includes(sentence)).join(' ');
    this.problem.hidden = !action;
    setText(
      this.problem,
      action ? `${NAMES[action]} failed${rest ? `: ${rest}` : '.'}` : ''
    );
  }

  private async _askFirst(
    action: Action,
    question: string,
    asked: HTMLElement
  ): Promise<void> {
    const name = NAMES[action];
    const yes = this._confirm
      ? await this._confirm(question, name)
      : await this._inlineQuestion(question, name, asked);
    if (yes) {
      await this._ask(action);
    }
  }

  private _inlineQuestion(
    question: string,
    name: string,
    asked: HTMLElement
  ): Promise<boolean> {
    return new Promise(resolve => {
      const answer = (yes: boolean) => {
        this.question.hidden = true;
        asked.focus();
        resolve(yes);
      };
      const yes = button('det-button det-danger', `${name} it`, () =>
        answer(true)
      );
      const no = button(
        'det-button',
        name === NAMES.kill ? 'Let it stop' : 'Keep running',
        () => answer(false)
      );
      this.question.onkeydown = event => {
        if (event.key === 'Escape') {
          answer(false);
        }
      };
      this.question.setAttribute('aria-label', question);
      this.question.replaceChildren(make('span', '', {}, question), yes, no);
      this.question.hidden = false;
      no.focus();
    });
  }

  private async _ask(action: Action): Promise<void> {
    this._asking = true;
    this._pressed =
      this._all().find(each => each === document.activeElement) ?? null;
    this._failed = null;
    this._refresh();
    try {
      await this._source.act(action);
    } catch (error) {
      this._failed = { action, why: sentencesOf(error) };
    } finally {
      this._asking = false;
      this._refresh();
    }
  }

  private _refresh(): void {
    const { view } = this._source;
    if (view.experiment) {
      this.update(view.experiment, view);
    }
  }
}

function sentencesOf(error: unknown): string[] {
  if (!(error instanceof Error)) {
    return [String(error)];
  }
  const { message, remedy } = error as Error & { remedy?: unknown };
  return [message, typeof remedy === 'string' ? remedy : ''].filter(Boolean);
}

function titleOf(view: ExperimentView): string {
  return view.trialId > 0
    ? `Trial ${numberOf(view.trials, view.trialId)}`
    : `Experiment ${view.id}`;
}

function nameOf(view: ExperimentView, experiment: ExperimentDetail): string {
  if (view.trialId > 0) {
    return `of experiment ${view.id}`;
  }
  return experiment.name === titleOf(view) ? '' : experiment.name;
}

function factsOf(
  view: ExperimentView,
  experiment: ExperimentDetail,
  trial: Trial | null
): string[] {
  const active = !isTerminal(experiment.state);
  const facts = active ? [formatPercent(progressOf(view))] : [];
  if (
    active &&
    experiment.seconds_left !== null &&
    experiment.seconds_left !== undefined
  ) {
    facts.push(`${formatLeft(experiment.seconds_left)} left`);
  }
  facts.push(
    ...(trial ? trialFacts(trial, experiment) : searchFacts(view, experiment))
  );
  const best = trial ? trial.best_validation : experiment.best_validation;
  if (best !== null) {
    facts.push(
      `best ${experiment.metric || 'validation'} ${formatValue(best)}${whose(view)}`
    );
  }
  const [begin, end] = [
    trial?.started ?? experiment.started,
    trial?.ended ?? experiment.ended
  ];
  if (begin && end) {
    facts.push(
      `took ${formatDuration((Date.parse(end) - Date.parse(begin)) / 1000)}`
    );
  }
  return [
    ...facts,
    experiment.in_kernel ? TEXTS.inKernel : '',
    experiment.test ? 'test run: one short loop only' : ''
  ];
}

function searchFacts(
  view: ExperimentView,
  experiment: ExperimentDetail
): string[] {
  const only = view.trials.length === 1 ? view.trials[0] : undefined;
  if (only && experiment.trials <= 1) {
    return trialFacts(only, experiment);
  }
  const { searcher } = experiment.config as { searcher?: { name?: unknown } };
  const name =
    typeof searcher?.name === 'string' ? `${searcher.name} search, ` : '';
  const count = Math.max(experiment.trials, view.trials.length);
  const of = (...states: string[]) =>
    view.trials.filter(trial => states.includes(trial.state)).length;
  const failed = of('ERROR') > 0 ? `, ${of('ERROR')} failed` : '';
  const stopped = of('CANCELED') > 0 ? `, ${of('CANCELED')} stopped` : '';
  const early = view.trials.filter(trial => trial.stopped_early).length;
  const short = early > 0 ? `, ${formatCount(early)} stopped early` : '';
  const done = `${formatCount(of('COMPLETED', 'ERROR'))} of ${formatCount(count)} trials done`;
  return [`${name}${done}${short}${failed}${stopped}`];
}

function trialFacts(
  trial: Trial,
  experiment: ExperimentView['experiment']
): string[] {
  const facts = [
    `batch ${formatCount(trial.batches)} of ${formatCount(trial.target_batches)}`
  ];
  const hparams = formatHparams(trial.hparams);
  const short = hparams.length <= 80 ? hparams : '';
  return [...facts, slotsText(trial, experiment), short].filter(Boolean);
}

function whose(view: ExperimentView): string {
  const best =
    view.trials.length > 1 && view.trialId === 0 ? bestTrial(view) : null;
  return best ? ` (trial ${trialNumber(best)})` : '';
}

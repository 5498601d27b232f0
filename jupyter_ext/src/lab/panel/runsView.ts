/** The runs of notebooks above the list of experiments; names and errors are text, never HTML. */
import { button, make, setName, setText } from '../../shared/dom';
import { capitalised } from '../../shared/format';
import type { ExperimentId } from '../../shared/model';
import { shortName } from '../../shared/paths';
import { type Shape, stateIcons } from '../icons';
import {
  cellText,
  experimentsOf,
  goesOn,
  notebookName,
  type NotebookRun
} from '../notebookRuns';

/** What the buttons of a run do. */
export interface RunActions {
  onOpen: (run: NotebookRun) => void;
  onStop: (run: NotebookRun) => void;
  onExperiment: (id: ExperimentId) => void;
}

const SHAPES: Readonly<Record<NotebookRun['state'], Shape>> = {
  STARTING: 'waiting',
  RUNNING: 'running',
  COMPLETED: 'done',
  FAILED: 'failed',
  STOPPED: 'stopped'
};

/** The list. */
export class RunsView {
  readonly element = make('section', 'det-Runs', {
    'aria-label': 'Runs of notebooks'
  });
  private readonly _list = make('ul');
  private readonly _rows = new Map<number, RunRow>();

  constructor(private readonly _actions: RunActions) {
    this.element.append(this._list);
    this.element.hidden = true;
  }

  /** Show these runs. */
  show(runs: readonly NotebookRun[]): void {
    this.element.hidden = runs.length === 0;
    const ids = new Set(runs.map(({ id }) => id));
    for (const [id, row] of this._rows) {
      if (!ids.has(id)) {
        row.element.remove();
        this._rows.delete(id);
      }
    }
    runs.forEach((run, index) => {
      const row = this._rows.get(run.id) ?? new RunRow(this._actions);
      this._rows.set(run.id, row);
      row.show(run);
      if (this._list.children[index] !== row.element) {
        this._list.insertBefore(
          row.element,
          this._list.children[index] ?? null
        );
      }
    });
  }
}

/** What is said of how a run stands. */
export function stateText(run: NotebookRun): string {
  return run.state === 'COMPLETED'
    ? `Completed · ${run.cells} cells`
    : `${capitalised(run.state.toLowerCase())} · ${cellText(run)}`;
}

class RunRow {
  readonly element = make('li', 'det-Run');
  private _run: NotebookRun | null = null;
  private readonly _icon = make('span', 'det-Row-icon', {
    'aria-hidden': 'true'
  });
  private readonly _name = make('span', 'det-Row-name');
  private readonly _state = make('span', 'det-Run-state');
  private readonly _experiments = make('span', 'det-Run-experiments');
  private readonly _problem = make('div', 'det-Run-problem');
  private readonly _stop: HTMLButtonElement;
  private readonly _open: HTMLButtonElement;

  constructor(private readonly _actions: RunActions) {
    this._stop = this._button('Stop', run => _actions.onStop(run));
    this._open = this._button('Open', run => _actions.onOpen(run));
    this._open.title = 'Open the executed notebook, as far as it has come';
    const first = make(
      'div',
      'det-Row-line',
      {},
      this._name,
      this._stop,
      this._open
    );
    const second = make(
      'div',
      'det-Run-second',
      {},
      this._state,
      this._experiments
    );
    const main = make('div', 'det-Row-main', {}, first, second, this._problem);
    this.element.append(this._icon, main);
  }

  show(run: NotebookRun): void {
    const before = this._run;
    this._run = run;
    const shape = SHAPES[run.state];
    if (this.element.dataset.shape !== shape) {
      this.element.dataset.shape = shape;
      this._icon.replaceChildren(stateIcons[shape].element({ tag: 'span' }));
    }
    const name = notebookName(run);
    setName(this._name, name);
    this._name.title = `Run ${run.id}: ${run.path}`;
    setText(this._state, stateText(run));
    const problem = [run.error, ...run.notes].filter(Boolean).join(' ');
    setText(this._problem, problem);
    this._problem.title = problem;
    this._problem.hidden = problem === '';
    this._stop.hidden = !goesOn(run);
    this._stop.setAttribute('aria-label', `Stop run ${run.id} of ${name}`);
    this._open.setAttribute(
      'aria-label',
      `Open the executed notebook of run ${run.id} of ${name}`
    );
    if (before?.experiments.join() !== run.experiments.join()) {
      this._experiments.replaceChildren(
        ...experimentsOf(run).map(id =>
          button('det-Panel-all', shortName(id), () =>
            this._actions.onExperiment(id)
          )
        )
      );
    }
  }

  private _button(
    label: string,
    act: (run: NotebookRun) => void
  ): HTMLButtonElement {
    return button('det-Panel-all', label, () => {
      if (this._run !== null) {
        act(this._run);
      }
    });
  }
}

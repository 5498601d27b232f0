/** The log of a trial: its end is followed, older lines are loaded as one scrolls up, and the trial can be chosen. */

import { button, make, setText } from './dom';
import { lineText } from './facts';
import type { ExperimentSource, ExperimentView, LogLine } from './model';
import { ended, Section } from './sections';
import { TEXTS } from './texts';
import { TrialChoice } from './trialChoice';
import { logTrial } from './view';
import { numberOf } from './trialNumbers';

/** Nearer to the top than this, earlier lines are loaded; nearer to the end, it is followed. */
const NEAR_TOP = 40;
const NEAR_END = 8;
/** So long a trial is highlighted until its log is loaded. */
const DWELL_MILLISECONDS = 300;

export class LogSection {
  readonly root: HTMLElement;
  private readonly _section: Section;
  private readonly _trial = new TrialChoice('Trial whose log is shown', () =>
    this._choose()
  );
  private readonly _earlier = button('det-button', 'Earlier lines', () =>
    this._loadEarlier()
  );
  private readonly _problem = make('span', '', { role: 'status' });
  private readonly _tools = make('div', 'det-log-tools');
  private readonly _lines = make('pre', 'det-log', {
    tabindex: '0',
    role: 'log',
    'aria-live': 'off', // not read out line by line
    'aria-label': 'Log lines'
  });
  private readonly _nodes: Text[] = [];
  private _shown: readonly LogLine[] = [];
  private _loading = false;
  private _dwell: ReturnType<typeof setTimeout> | undefined;
  /** The trial that is highlighted, whose log is shown in place of that which was chosen before. */
  private _looked: number | null = null;
  private _before: number | null = null;

  constructor(private readonly _source: ExperimentSource) {
    this._tools.append(this._trial.root, this._earlier, this._problem);
    this._section = new Section(this._lines, true, this._tools);
    this.root = this._section.root;
    this._lines.addEventListener('scroll', () => this._scrolled());
  }

  update(view: ExperimentView): void {
    const { log, logs, trials } = view;
    const shown = log?.trialId ?? logTrial(view)?.id;
    const whose =
      shown && trials.length > 1 ? ` of trial ${numberOf(trials, shown)}` : '';
    const which = log ? '' : ', last lines';
    const nothing = ended(view) ? TEXTS.noLogsEnded : TEXTS.noLogs;
    const chooses = this._trial.show(view, log);
    this._earlier.hidden = (log?.atBegin ?? true) || logs.length === 0;
    // What may be chosen stays in sight where the log of one trial is empty.
    this._tools.hidden = logs.length === 0 && !chooses;
    this._section.show(
      `Log${whose}${which}`,
      logs.length === 0 ? nothing : null
    );
    if (this._shown !== logs) {
      this._showLines(logs);
    }
  }

  /** Show the log of a trial while it is highlighted; a pointer that only passes by changes nothing. */
  highlight(trialId: number | null): void {
    clearTimeout(this._dwell);
    this._dwell = setTimeout(() => this._look(trialId), DWELL_MILLISECONDS);
  }

  dispose(): void {
    clearTimeout(this._dwell);
  }

  private _look(trialId: number | null): void {
    const { log } = this._source.view;
    if (log === null || trialId === this._looked) {
      return;
    }
    const { style, offsetHeight } = this.root;
    if (this._looked === null) {
      this._before = log.chosen ? log.trialId : null;
      style.minHeight = `${offsetHeight}px`; // else what is pointed at might move
    } else if (trialId === null) {
      style.minHeight = '';
    }
    this._looked = trialId;
    void this._tell(this._source.chooseLog?.(trialId ?? this._before));
  }

  /** Earlier lines go before those that are seen, newer ones behind them; what is read does not move. */
  private _showLines(logs: readonly LogLine[]): void {
    const pre = this._lines;
    const atEnd =
      pre.scrollTop + pre.clientHeight >= pre.scrollHeight - NEAR_END;
    const [first, last] = [this._shown[0]?.id, this._shown.at(-1)?.id];
    const same = logs.some(line => line.id === last);
    if (first === undefined || last === undefined || !same) {
      this._nodes.splice(0).forEach(node => node.remove());
      this._insert(logs, 0);
    } else {
      const height = pre.scrollHeight;
      const gone = this._shown.filter(line => line.id < (logs[0]?.id ?? 0));
      this._nodes.splice(0, gone.length).forEach(node => node.remove());
      this._insert(
        logs.filter(line => line.id < first),
        0
      );
      pre.scrollTop += pre.scrollHeight - height;
      this._insert(
        logs.filter(line => line.id > last),
        this._nodes.length
      );
    }
    this._shown = logs;
    if (atEnd || !same) {
      pre.scrollTop = pre.scrollHeight;
    }
  }

  private _insert(lines: readonly LogLine[], at: number): void {
    const nodes = lines.map(line =>
      document.createTextNode(`${lineText(line)}\n`)
    );
    const next = this._nodes[at] ?? null;
    nodes.forEach(node => this._lines.insertBefore(node, next));
    this._nodes.splice(at, 0, ...nodes);
  }

  private _scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this._lines;
    if (scrollTop < NEAR_TOP && scrollHeight > clientHeight) {
      this._loadEarlier();
    }
  }

  private _loadEarlier(): void {
    if (!this._loading && !this._earlier.hidden) {
      this._loading = true;
      void this._tell(this._source.earlierLogs?.()).then(
        () => (this._loading = false)
      );
    }
  }

  private _choose(): void {
    this._before = this._trial.value;
    void this._tell(this._source.chooseLog?.(this._before));
  }

  private async _tell(work: Promise<void> | undefined): Promise<void> {
    setText(this._problem, '');
    try {
      await work;
    } catch (error) {
      setText(
        this._problem,
        error instanceof Error ? error.message : String(error)
      );
    }
  }
}

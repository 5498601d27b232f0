/** One experiment as DOM, for a notebook's cell and for a page of JupyterLab. */

import { ChartGrid } from './chartGrid';
import { button, make, setProse, setText } from './dom';
import { Header } from './header';
import { LogSection } from './logSection';
import { shownTrial } from './facts';
import type { Checkpoint, ExperimentSource, ExperimentView } from './model';
import { isTerminal } from './model';
import { FilesSection, MediaSection } from './outputsSections';
import { SearchSection } from './searchSection';
import { CheckpointsSection, FailureSection, TrialsSection } from './sections';
import { SystemSection } from './systemSection';
import { hasEnded } from './view';
import { connectionText, missingText, TEXTS } from './texts';

export interface ExperimentElementOptions {
  /** Offers "Load into notebook" for each checkpoint. */
  onLoad?: (checkpoint: Checkpoint) => void;
  /** Show as a page (all the room there is) rather than under a cell. */
  page?: boolean;
  /** Asks the user before something that cannot be undone; the element asks itself by default. */
  confirm?: (question: string, action: string) => Promise<boolean>;
}

/** Told once by the DOM of a view, and heard above it: what it shows has ended. */
export const ENDED_EVENT = 'det-ended';

/** Told when the first facts are there, and the view is more than a title; `data-known` says it, too. */
export const KNOWN_EVENT = 'det-known';

interface Part {
  readonly root: HTMLElement;
  update(view: ExperimentView): void;
}

/** Shows what a source says; owns `root`, not the source. Changes are drawn once a frame. */
export class ExperimentElement {
  readonly root: HTMLElement;
  private readonly _parts: readonly Part[];
  private readonly _sections: readonly Part[];
  private readonly _charts = new ChartGrid();
  private readonly _search = new SearchSection();
  private readonly _media: MediaSection;
  private readonly _log: LogSection;
  private readonly _header: Header;
  private readonly _unsubscribe: () => void;
  private _frame = 0;
  private _ended = false;
  private readonly _page: boolean;
  private _folded = false;

  constructor(
    host: HTMLElement,
    private readonly _source: ExperimentSource,
    options: ExperimentElementOptions = {}
  ) {
    const source = this._source;
    const page = options.page ?? false;
    this._page = page;
    this._log = new LogSection(source);
    this._media = new MediaSection(source);
    this._sections = [
      new TrialsSection((held, pointed) => {
        this._charts.highlight(held, pointed);
        this._search.highlight(pointed ?? held);
        this._log.highlight(pointed ?? held);
      }),
      this._media,
      new CheckpointsSection(page, options.onLoad),
      new FilesSection(source, page),
      new SystemSection(page),
      this._log
    ];
    this._parts = [
      (this._header = new Header(source, options.confirm)),
      new Notice(source),
      new FailureSection(),
      this._charts,
      this._search,
      ...this._sections
    ];
    this.root = make('section', `det-view${page ? ' det-page' : ''}`, {
      'aria-label': `Experiment ${source.view.id}`
    });
    this.root.append(...this._parts.map(part => part.root));
    host.append(this.root);
    this._update(source.view);
    this._unsubscribe = source.subscribe(() => this._updateSoon());
  }

  /** Offer to end the waiting of the cell above; null where none waits. */
  offerLeaving(leave: (() => void) | null): void {
    this._header.leave = leave;
    this._updateSoon();
  }

  dispose(): void {
    this._unsubscribe();
    cancelAnimationFrame(this._frame);
    this._charts.dispose();
    this._search.dispose();
    this._log.dispose();
    this._media.dispose();
    this.root.remove();
  }

  /** Under a cell, a failure is told in few lines, and all else is there to be unfolded. */
  private _fold(): void {
    this._folded = true;
    this._sections.forEach(({ root }) => root.removeAttribute('open'));
    const folded = make(
      'details',
      'det-section',
      {},
      make('summary', '', {}, 'Charts')
    );
    this._charts.root.before(folded);
    folded.append(this._charts.root, this._search.root);
  }

  private _updateSoon(): void {
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this._update(this._source.view);
    });
  }

  private _update(view: ExperimentView): void {
    if (!this._folded && !this._page && view.experiment?.state === 'ERROR') {
      this._fold();
    }
    this._sections.forEach(({ root }) => (root.hidden = false));
    this._parts.forEach(part => part.update(view));
    if (view.experiment === null) {
      // The notice says that it loads: to say that there are no trials would be untrue.
      this._sections.forEach(({ root }) => (root.hidden = true));
    }
    if (view.experiment !== null && !this.root.hasAttribute('data-known')) {
      this.root.setAttribute('data-known', '');
      this.root.dispatchEvent(new Event(KNOWN_EVENT, { bubbles: true }));
    }
    const trial = shownTrial(view);
    const ended = hasEnded(view) || (trial !== null && isTerminal(trial.state));
    if (ended && !this._ended) {
      this._ended = true;
      this.root.dispatchEvent(new Event(ENDED_EVENT, { bubbles: true }));
    }
  }
}

/** How the connection is, in words, while it is not well. */
class Notice implements Part {
  readonly root = make('div', 'det-notice', { role: 'status' });
  private readonly _text = make('span');
  private readonly _start: HTMLButtonElement;
  private readonly _retry: HTMLButtonElement;

  constructor(private readonly _source: ExperimentSource) {
    this._start = button('det-button', TEXTS.start, () => void this._begin());
    this._retry = button('det-button', 'Try now', () => _source.retry());
    this.root.append(this._text, this._start, this._retry);
  }

  update(view: ExperimentView): void {
    const { connection } = view;
    const text =
      connection.kind === 'connecting' && view.experiment
        ? ''
        : connectionText(connection);
    const missing = connection.kind === 'missing';
    setProse(this._text, missing ? missingText(view) : text);
    const lost = connection.kind === 'lost' ? connection.state : '';
    this.root.hidden = text === '' && !missing;
    this._start.hidden = lost !== 'none' || this._source.start === undefined;
    this._retry.hidden = (lost === '' && !missing) || lost === 'gone';
    this.root.dataset.tone = lost === '' && !missing ? 'neutral' : 'waiting';
  }

  private async _begin(): Promise<void> {
    this._start.disabled = true;
    try {
      await this._source.start?.();
    } catch (error) {
      setText(
        this._text,
        error instanceof Error ? error.message : String(error)
      );
    } finally {
      this._start.disabled = false;
    }
  }
}

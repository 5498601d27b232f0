/** What a trial gives besides metrics: a gallery of what it logged, and the files that its code wrote. */

import { make, setText } from './dom';
import { formatBytes } from './format';
import { KeyedTable } from './keyedTable';
import { MediaCard } from './mediaCard';
import { MediaContents } from './mediaContents';
import type {
  Artifact,
  ExperimentSource,
  ExperimentView,
  Medium,
  OutputsState
} from './model';
import { fileName, seriesOf, seriesText } from './outputs';
import { Section } from './sections';
import { TEXTS } from './texts';
import { TrialChoice } from './trialChoice';
import { numberOf } from './trialNumbers';

/** ` of trial 3`, where there are several. */
function whose(view: ExperimentView, outputs: OutputsState | null): string {
  return outputs && view.trials.length > 1
    ? ` of trial ${numberOf(view.trials, outputs.trialId)}`
    : '';
}

/** Chooses the trial for the sections below it, and says why that failed. */
class Choice {
  readonly root: HTMLElement;
  private readonly _problem = make('span', '', { role: 'status' });
  private readonly _trial: TrialChoice;

  constructor(label: string, source: ExperimentSource) {
    this._trial = new TrialChoice(label, trialId => {
      setText(this._problem, '');
      source.chooseOutputs?.(trialId).catch((error: unknown) => {
        const words = error instanceof Error ? error.message : String(error);
        setText(this._problem, words);
      });
    });
    this.root = make(
      'div',
      'det-log-tools',
      {},
      this._trial.root,
      this._problem
    );
  }

  show(view: ExperimentView, offered: boolean): void {
    const state = offered ? view.outputs : null;
    this.root.hidden = !this._trial.show(view, state);
  }
}

export class MediaSection {
  readonly root: HTMLDetailsElement;
  private readonly _section: Section;
  private readonly _grid = make('div', 'det-media-grid');
  private readonly _choice: Choice;
  private readonly _contents: MediaContents;
  private readonly _cards = new Map<string, MediaCard>();
  private _trialId = 0;
  private _shown: readonly Medium[] | null = null;
  private _known = false;
  private _title = '';

  constructor(private readonly _source: ExperimentSource) {
    const read = _source.content?.bind(_source);
    this._contents = new MediaContents(read);
    this._choice = new Choice('Trial whose pictures are shown', _source);
    this._section = new Section(this._grid, true, this._choice.root);
    this.root = this._section.root;
  }

  update(view: ExperimentView): void {
    const { outputs } = view;
    const media = outputs?.media ?? [];
    // Another trial may have some, where this one was chosen.
    this._known ||= media.length > 0;
    this.root.hidden = !this._known;
    this._choice.show(view, this._source.chooseOutputs !== undefined);
    if (outputs && outputs.trialId !== this._trialId) {
      this._trialId = outputs.trialId;
      this._shown = null;
      this._forget(new Set());
    }
    if (this._shown !== media) {
      this._shown = media;
      this._show(media);
    }
    this._section.show(
      `Gallery${whose(view, outputs)}${this._title && `: ${this._title}`}`,
      media.length > 0 ? null : TEXTS.noMedia
    );
  }

  dispose(): void {
    this._forget(new Set());
    this._contents.dispose();
  }

  private _show(media: readonly Medium[]): void {
    const series = seriesOf(media);
    this._title = seriesText(series);
    this._forget(new Set(series.map(({ key }) => key)));
    series.forEach((each, index) => {
      const card = this._cards.get(each.key) ?? new MediaCard(this._contents);
      this._cards.set(each.key, card);
      if (this._grid.children[index] !== card.root) {
        this._grid.insertBefore(card.root, this._grid.children[index] ?? null);
      }
      card.update(each);
    });
  }

  /** Remove the cards of all but these. */
  private _forget(kept: ReadonlySet<string>): void {
    for (const [key, card] of this._cards) {
      if (!kept.has(key)) {
        card.dispose();
        card.root.remove();
        this._cards.delete(key);
      }
    }
  }
}

export class FilesSection {
  readonly root: HTMLDetailsElement;
  private readonly _section: Section;
  private readonly _table: KeyedTable<Artifact>;
  private readonly _note = make('p', 'det-empty');
  private readonly _choice: Choice;
  private _known = false;

  constructor(
    private readonly _source: ExperimentSource,
    open: boolean
  ) {
    this._choice = new Choice('Trial whose files are shown', _source);
    this._table = new KeyedTable<Artifact>({
      label: 'Files',
      // What was written anew has another address.
      key: ({ path, sha256 }) => `${path} ${sha256}`,
      columns: [
        { title: 'File', text: ({ path }) => path, tip: ({ path }) => path },
        {
          title: 'Size',
          text: ({ size }) => formatBytes(size),
          value: ({ size }) => size,
          numeric: true
        },
        {
          title: 'Batch',
          text: ({ batch }) => String(batch),
          value: ({ batch }) => batch,
          numeric: true
        },
        { title: 'Note', text: ({ note }) => note, tip: ({ note }) => note }
      ],
      action: file => downloadLink(file, _source)
    });
    const body = make('div', '', {}, this._note, this._table.root);
    this._section = new Section(body, open, this._choice.root);
    this.root = this._section.root;
  }

  update(view: ExperimentView): void {
    const files = view.outputs?.files ?? [];
    this._known ||= files.length > 0;
    this.root.hidden = !this._known;
    this._choice.show(view, this._source.chooseOutputs !== undefined);
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const count = `${files.length} file${files.length === 1 ? '' : 's'}`;
    const total = files.length > 0 ? `: ${count}, ${formatBytes(size)}` : '';
    this._section.show(
      `Files${whose(view, view.outputs)}${total}`,
      files.length > 0 ? null : TEXTS.noFiles
    );
    setText(this._note, TEXTS.filesInNotebook);
    this._note.hidden = files.every(file => addressOf(file, this._source));
    this._table.setItems(files);
  }
}

/** Address of a file whose content was kept, where this page can fetch it. */
function addressOf(file: Artifact, source: ExperimentSource): string | null {
  return file.sha256 ? (source.fileAddress?.(file) ?? null) : null;
}

function downloadLink(
  file: Artifact,
  source: ExperimentSource
): HTMLElement | null {
  const address = addressOf(file, source);
  return address === null
    ? null
    : make(
        'a',
        'det-button det-link',
        {
          href: address,
          download: fileName(file),
          'aria-label': `Download ${file.path}`
        },
        'Download'
      );
}

/** A view below a cell: live where its widget lives or a master knows it, and else what was saved beside it. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel, Widget } from '@lumino/widgets';

import { make } from '../../shared/dom';
import { ENDED_EVENT, KNOWN_EVENT } from '../../shared/experimentView';
import { type Attach, liveViews } from '../../shared/liveViews';
import { asExperimentId } from '../../shared/paths';
import { awayText } from '../../shared/texts';
import { keep } from './keep';
import { VIEW_MIME_TYPE } from './mimeType';
import {
  isFinal,
  type NamedView,
  type SavedForm,
  type ServerViews
} from './serverViews';

/** What is shown where no widget lives, best first. */
const SAVED_MIME_TYPES = ['text/html', 'image/png', 'text/plain'];

/** A widget that lives is there by the first of them; until the last, the page may still be opening the notebook. */
const LOOKS_MILLISECONDS = [2000, 3000, 5000, 10_000];

/** A kernel that lives renews within this time what is saved of an experiment that has ended. */
const RENEWAL_MILLISECONDS = 15_000;

/** Before the widget manager's own renderer, which of a saved widget shows only that it is not there. */
const RANK = -20;

/** Have outputs with a view shown by `ViewOutput`; those of notebooks that are not trusted are shown as HTML. */
export function addViewOutput(
  registry: IRenderMimeRegistry,
  views: ServerViews
): void {
  const factory: IRenderMime.IRendererFactory = {
    safe: false,
    mimeTypes: [VIEW_MIME_TYPE],
    createRenderer: () => new ViewOutput(registry, views)
  };
  registry.addFactory(factory, RANK);
}

/** Shows one display. */
export class ViewOutput extends Panel implements IRenderMime.IRenderer {
  private _id = '';
  private _model: IRenderMime.IMimeModel | null = null;
  private _saved: IRenderMime.IRenderer | null = null;
  private _savedType = '';
  private _live: Widget | null = null;
  /** Why what was saved is all there is, while the experiment may go on. */
  private _away: Widget | null = null;
  private _detach: () => void = () => undefined;
  private _unwatch: () => void = () => undefined;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _renewal: ReturnType<typeof setTimeout> | undefined;
  private _endRetry: () => void = () => undefined;
  /** The live view was found without any kernel. */
  private _ofServer = false;

  constructor(
    private readonly _registry: IRenderMimeRegistry,
    private readonly _views: ServerViews
  ) {
    super();
    this.addClass('det-Output');
    this.node.addEventListener(ENDED_EVENT, () => this._renewSoon());
    this.node.addEventListener(KNOWN_EVENT, () => void this._showBest());
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._model = model;
    const named = namedView(model);
    if (named.view_id !== this._id) {
      this._id = named.view_id;
      this._sayAway('');
      this._unwatch();
      this._changed(null);
      this._unwatch = liveViews().watch(
        this._id,
        attach => this._changed(attach),
        state => keep(this, this._id, state)
      );
      this._findSoon(named);
    }
    await this._showBest();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      clearTimeout(this._timer);
      clearTimeout(this._renewal);
      this._endRetry();
      this._unwatch();
      this._hideLive();
    }
    super.dispose();
  }

  private _findSoon(named: NamedView, look = 0): void {
    clearTimeout(this._timer);
    const patience = LOOKS_MILLISECONDS[look];
    if (this._live === null && patience !== undefined) {
      this._timer = setTimeout(
        () => void this._findView(named, look),
        patience
      );
    }
  }

  private async _findView(named: NamedView, look: number): Promise<void> {
    let attach: Attach | null = null;
    let away = '';
    try {
      attach = await this._views.find(named);
    } catch (error) {
      away = awayText(error);
    }
    if (this._live !== null || this._id !== named.view_id || this.isDisposed) {
      return;
    }
    this._endRetry();
    if (attach) {
      this._ofServer = true;
      this._showLive(attach);
      return;
    }
    this._sayAway(away);
    this._findSoon(named, look + 1);
    if (away) {
      this._endRetry = this._views.onRetry(() => this._findSoon(named));
    }
  }

  /** It has ended: if its kernel does not say so to the notebook, the server does. */
  private _renewSoon(
    patience = this._ofServer ? 0 : RENEWAL_MILLISECONDS
  ): void {
    clearTimeout(this._renewal);
    this._renewal = setTimeout(() => void this._renew(patience), patience);
  }

  private async _renew(patience: number): Promise<void> {
    const before = this._model;
    if (before === null || isFinal(namedView(before))) {
      return;
    }
    let form: SavedForm | null = null;
    try {
      form = await this._views.saved(namedView(before));
    } catch {
      if (!this.isDisposed) {
        this._renewSoon(Math.max(2 * patience, RENEWAL_MILLISECONDS));
      }
    }
    // A disposed output is in no cell any more; one that was renewed meanwhile has the kernel's word.
    if (form && !this.isDisposed && this._model === before) {
      const named = before.data[VIEW_MIME_TYPE] as object;
      const view = { [VIEW_MIME_TYPE]: { ...named, state: form.state } };
      keep(this, this._id, { ...before.data, ...form.data, ...view });
    }
  }

  private _changed(attach: Attach | null): void {
    clearTimeout(this._timer);
    this._endRetry();
    this._ofServer = false;
    this._hideLive();
    if (attach === null) {
      void this._showBest();
    } else {
      this._showLive(attach);
    }
  }

  private _sayAway(text: string): void {
    this._away?.dispose();
    this._away = null;
    if (text) {
      const notice = make('p', 'det-Output-away', { role: 'status' }, text);
      this._away = new Widget({ node: notice });
      this.insertWidget(0, this._away);
    }
  }

  private _showLive(attach: Attach): void {
    this._sayAway('');
    this._live = new Widget();
    this.insertWidget(0, this._live);
    this._detach = attach(this._live.node);
    void this._showBest();
  }

  /** What was saved, if there is no live view, or below one that knows nothing yet, which may last. */
  private async _showBest(): Promise<void> {
    if (!this._live?.node.querySelector('[data-known]')) {
      await this._showSaved();
    } else {
      this._saved?.dispose();
      this._saved = null;
    }
  }

  private _hideLive(): void {
    this._detach();
    this._detach = () => undefined;
    this._live?.dispose();
    this._live = null;
  }

  private async _showSaved(): Promise<void> {
    const model = this._model;
    const type = SAVED_MIME_TYPES.find(each => model?.data[each] !== undefined);
    if (model === null || type === undefined) {
      return;
    }
    if (this._saved === null || this._savedType !== type) {
      this._saved?.dispose();
      this._savedType = type;
      this._saved = this._registry.createRenderer(type);
      this.addWidget(this._saved);
    }
    await this._saved.renderModel(model);
  }
}

/** Read what the output says; a file may say anything. */
function namedView(model: IRenderMime.IMimeModel): NamedView {
  const { view_id, experiment_id, trial_id, created, state } = (model.data[
    VIEW_MIME_TYPE
  ] ?? {}) as Record<string, unknown>;
  return {
    view_id: typeof view_id === 'string' ? view_id : '',
    experiment_id: asExperimentId(experiment_id) ?? undefined,
    trial_id: wholeNumber(trial_id),
    created: typeof created === 'string' ? created : undefined,
    state: typeof state === 'string' ? state : undefined
  };
}

function wholeNumber(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

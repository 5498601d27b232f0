/** A view below a cell: live where its widget lives or its kernel is busy, and else what was saved beside it. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel, Widget } from '@lumino/widgets';

import { type Attach, liveViews } from '../../shared/liveViews';
import type { FindView, NamedView } from './busyKernel';
import { keep } from './keep';
import { VIEW_MIME_TYPE } from './mimeType';

/** What is shown where no widget lives, best first. */
const SAVED_MIME_TYPES = ['text/html', 'image/png', 'text/plain'];

/** A widget that lives is there by the first of them; until the last, the page may still be opening the notebook. */
const LOOKS_MILLISECONDS = [2000, 3000, 5000, 10_000];

/** Before the widget manager's own renderer, which of a saved widget shows only that it is not there. */
const RANK = -20;

/** Have outputs with a view shown by `ViewOutput`; those of notebooks that are not trusted are shown as HTML. */
export function addViewOutput(
  registry: IRenderMimeRegistry,
  find: FindView
): void {
  const factory: IRenderMime.IRendererFactory = {
    safe: false,
    mimeTypes: [VIEW_MIME_TYPE],
    createRenderer: () => new ViewOutput(registry, find)
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
  private _detach: () => void = () => undefined;
  private _unwatch: () => void = () => undefined;
  private _timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly _registry: IRenderMimeRegistry,
    private readonly _find: FindView
  ) {
    super();
    this.addClass('det-Output');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._model = model;
    const named = namedView(model);
    if (named.view_id !== this._id) {
      this._id = named.view_id;
      this._unwatch();
      this._hideLive();
      this._unwatch = liveViews().watch(
        this._id,
        attach => this._changed(attach),
        state => keep(this, this._id, state)
      );
      this._findSoon(named);
    }
    if (this._live === null) {
      await this._showSaved();
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      clearTimeout(this._timer);
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
    try {
      attach = await this._find(this, named);
    } catch {
      // Neither the server nor the master can be asked: what was saved stays.
    }
    if (this._live !== null || this._id !== named.view_id || this.isDisposed) {
      return;
    }
    if (attach) {
      this._showLive(attach);
    } else {
      this._findSoon(named, look + 1);
    }
  }

  private _changed(attach: Attach | null): void {
    clearTimeout(this._timer);
    this._hideLive();
    if (attach === null) {
      void this._showSaved();
    } else {
      this._showLive(attach);
    }
  }

  private _showLive(attach: Attach): void {
    this._saved?.dispose();
    this._saved = null;
    this._live = new Widget();
    this.addWidget(this._live);
    this._detach = attach(this._live.node);
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
  const { view_id, experiment_id, trial_id, created } = (model.data[
    VIEW_MIME_TYPE
  ] ?? {}) as Record<string, unknown>;
  return {
    view_id: typeof view_id === 'string' ? view_id : '',
    experiment_id: wholeNumber(experiment_id),
    trial_id: wholeNumber(trial_id),
    created: typeof created === 'string' ? created : undefined
  };
}

function wholeNumber(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

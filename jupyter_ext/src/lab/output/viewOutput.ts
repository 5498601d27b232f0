/** A view below a cell: live where its widget lives, and else what was saved beside it. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel, Widget } from '@lumino/widgets';

import { type Attach, liveViews } from '../../shared/liveViews';

/** MIME type of what names the view; the kernel puts it beside the widget, the HTML, the picture and the text. */
export const VIEW_MIME_TYPE = 'application/vnd.det-native.view+json';

/** What is shown where no widget lives, best first. */
const SAVED_MIME_TYPES = ['text/html', 'image/png', 'text/plain'];

/** Before the widget manager's own renderer, which of a saved widget shows only that it is not there. */
const RANK = -20;

/** Have outputs with a view shown by `ViewOutput`; those of notebooks that are not trusted are shown as HTML. */
export function addViewOutput(registry: IRenderMimeRegistry): void {
  const factory: IRenderMime.IRendererFactory = {
    safe: false,
    mimeTypes: [VIEW_MIME_TYPE],
    createRenderer: () => new ViewOutput(registry)
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

  constructor(private readonly _registry: IRenderMimeRegistry) {
    super();
    this.addClass('det-Output');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._model = model;
    const id = viewId(model);
    if (id !== this._id) {
      this._id = id;
      this._unwatch();
      this._hideLive();
      this._unwatch = liveViews().watch(id, attach => this._changed(attach));
    }
    if (this._live === null) {
      await this._showSaved();
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._unwatch();
      this._hideLive();
    }
    super.dispose();
  }

  private _changed(attach: Attach | null): void {
    this._hideLive();
    if (attach === null) {
      void this._showSaved();
      return;
    }
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

function viewId(model: IRenderMime.IMimeModel): string {
  const named = model.data[VIEW_MIME_TYPE] as { view_id?: unknown } | undefined;
  return typeof named?.view_id === 'string' ? named.view_id : '';
}

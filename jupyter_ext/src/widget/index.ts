/** The live view under a notebook's cell: an anywidget front end. */

import type { AnyModel } from '@anywidget/types';

import { liveViews, type SavedState } from '../shared/liveViews';
import '../shared/view.css';
import type { WidgetState } from './mounted';
import { Mounted } from './mounted';

/** What a display is known by, whichever of its renderings asks. */
const models = new Map<string, AnyModel<WidgetState>>();
const mounted = new Map<string, Mounted>();

/**
 * Keep the model that lasts as long as the display; those that `render` is given end with a rendering. In JupyterLab
 * with our extension nothing is rendered by the widget manager: the extension shows what is offered here.
 */
function initialize({ model }: { model: AnyModel<WidgetState> }): () => void {
  const id = model.get('view_id');
  models.set(id, model);
  const withdraw = liveViews().offer(id, place =>
    viewOf(id, model).attach(place)
  );
  const save = (message: unknown) => {
    const { type, data } = message as { type: string; data: SavedState };
    if (type === 'saved') {
      liveViews().save(id, data);
    }
  };
  model.on('msg:custom', save);
  model.send({ type: 'hello' });
  return () => {
    model.off('msg:custom', save);
    withdraw();
    models.delete(id);
  };
}

/**
 * Show the view of a display. The same view is moved where JupyterLab renders an output anew, which it does whenever
 * the saved picture is renewed: nothing of it is lost.
 */
function render({
  model,
  el
}: {
  model: AnyModel<WidgetState>;
  el: HTMLElement;
}): () => void {
  return viewOf(model.get('view_id'), model).attach(el);
}

function viewOf(id: string, model: AnyModel<WidgetState>): Mounted {
  let view = mounted.get(id);
  if (!view || view.disposed) {
    view = new Mounted(models.get(id) ?? model);
    mounted.set(id, view);
  }
  return view;
}

export default { initialize, render };

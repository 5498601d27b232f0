/**
 * The live views of a page, by the ids of their displays: the widget offers them, JupyterLab's outputs take them.
 *
 * The widget's bundle and the extension's are two; what they share hangs on the page.
 */

/** Shows a view in a place; returns what takes it away. */
export type Attach = (place: HTMLElement) => () => void;

/** What a notebook keeps of a display, by MIME type. */
export type SavedState = Readonly<Record<string, unknown>>;

/** Told of a view when it comes, and null when it goes. */
export type ViewListener = (attach: Attach | null) => void;

/** Told what the notebook is to keep, where the kernel cannot renew the output itself. */
export type SavedListener = (state: SavedState) => void;

interface Watching {
  readonly changed: ViewListener;
  readonly saved: SavedListener;
}

export class LiveViews {
  private readonly _views = new Map<string, Attach>();
  private readonly _listeners = new Map<string, Set<Watching>>();

  /** Offer a view; returns what withdraws it. */
  offer(id: string, attach: Attach): () => void {
    this._views.set(id, attach);
    this._tell(id, attach);
    return () => {
      if (this._views.get(id) === attach) {
        this._views.delete(id);
        this._tell(id, null);
      }
    };
  }

  /** Call `changed` now if there is such a view, and whenever it comes or goes; returns what ends it. */
  watch(
    id: string,
    changed: ViewListener,
    saved: SavedListener = () => undefined
  ): () => void {
    const listeners = this._listeners.get(id) ?? new Set();
    const watching = { changed, saved };
    this._listeners.set(id, listeners.add(watching));
    const known = this._views.get(id);
    if (known) {
      changed(known);
    }
    return () => {
      listeners.delete(watching);
      if (listeners.size === 0 && this._listeners.get(id) === listeners) {
        this._listeners.delete(id);
      }
    };
  }

  /** Have the outputs of a view keep its last state. */
  save(id: string, state: SavedState): void {
    this._listeners.get(id)?.forEach(listener => listener.saved(state));
  }

  private _tell(id: string, attach: Attach | null): void {
    this._listeners.get(id)?.forEach(listener => listener.changed(attach));
  }
}

const KEY = Symbol.for('det-native.live-views');

/** The live views of this page. */
export function liveViews(page: object = globalThis): LiveViews {
  const holder = page as { [KEY]?: LiveViews };
  return (holder[KEY] ??= new LiveViews());
}

/** What charts share: the cursor, the stretch that is shown and what is highlighted. No DOM. */

import type { Zoom } from './series';

export interface Shared {
  /** Where the cursor is on the x axis, in its units; null where it is nowhere. */
  readonly cursor: number | null;
  readonly zoom: Zoom;
  /** The group of series that stands out. */
  readonly highlighted: string | null;
  /** The group that stands out while nothing else is pointed at: chosen by a click on its name. */
  readonly pinned: string | null;
}

/** The state that charts of a board have in common. */
export class ChartSync {
  private readonly _listeners = new Set<(shared: Shared) => void>();
  private _shared: Shared = {
    cursor: null,
    zoom: null,
    highlighted: null,
    pinned: null
  };

  get shared(): Shared {
    return this._shared;
  }

  /** How many listen. */
  get size(): number {
    return this._listeners.size;
  }

  subscribe(listener: (shared: Shared) => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  set(change: Partial<Shared>): void {
    const next = { ...this._shared, ...change };
    const same =
      next.cursor === this._shared.cursor &&
      next.highlighted === this._shared.highlighted &&
      next.pinned === this._shared.pinned &&
      next.zoom?.[0] === this._shared.zoom?.[0] &&
      next.zoom?.[1] === this._shared.zoom?.[1];
    if (!same) {
      this._shared = next;
      this._listeners.forEach(listener => listener(next));
    }
  }
}

/** Whether a widget is really seen: it is shown, and so is the browser's tab. */
import type { IDisposable } from '@lumino/disposable';

/** Tells when something begins or ceases to be seen; hidden things cause no traffic. */
export class Presence implements IDisposable {
  private _shown = false;
  private _seen = false;
  private _disposed = false;
  private readonly _listener = () => this._update();

  /**
   * @param onChange - Called with whether it is seen now, only when that changes.
   * @param page - The page that may be in a tab behind others.
   */
  constructor(
    private readonly _onChange: (seen: boolean) => void,
    private readonly _page: Pick<
      Document,
      'hidden' | 'addEventListener' | 'removeEventListener'
    > = document
  ) {
    this._page.addEventListener('visibilitychange', this._listener);
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** Whether it is seen now. */
  get seen(): boolean {
    return this._seen;
  }

  /** Say whether the widget is shown in its window. */
  setShown(shown: boolean): void {
    this._shown = shown;
    this._update();
  }

  dispose(): void {
    this._disposed = true;
    this._page.removeEventListener('visibilitychange', this._listener);
  }

  private _update(): void {
    const seen = this._shown && !this._page.hidden;
    if (seen !== this._seen && !this._disposed) {
      this._seen = seen;
      this._onChange(seen);
    }
  }
}

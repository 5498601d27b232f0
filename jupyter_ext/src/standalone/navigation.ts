/** The workspace's address is what stands after `#`: reload, links and the back button work by themselves. */

import { HOME } from '../workspace/app/address';
import type { Navigation } from '../workspace/app/host';

export class HashNavigation implements Navigation {
  private readonly _listeners = new Set<() => void>();

  constructor(private readonly _window: Window) {
    const tell = () => this._listeners.forEach(listener => listener());
    _window.addEventListener('hashchange', tell);
    _window.addEventListener('popstate', tell);
  }

  get current(): string {
    const address = this._window.location.hash.slice(1);
    return address.startsWith('/') ? address : HOME;
  }

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  open(address: string, { replace = false } = {}): void {
    if (address === this.current) {
      return;
    }
    const { history } = this._window;
    if (replace) {
      history.replaceState(null, '', this.href(address));
    } else {
      history.pushState(null, '', this.href(address));
    }
    this._listeners.forEach(listener => listener());
  }

  /** Put another address in the place of the present one, whatever that was; the home page without one. */
  replace(address: string): void {
    const href = this.href(address || HOME);
    this._window.history.replaceState(null, '', href);
    this._listeners.forEach(listener => listener());
  }

  href(address: string): string {
    return `#${address}`;
  }
}

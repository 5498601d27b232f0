/** Addresses inside a tab of JupyterLab, whose browser address is not ours: each tab has a history of its own. */

import { PageConfig, URLExt } from '@jupyterlab/coreutils';

import type { Navigation } from '../../workspace/app/host';

const MOST_BACK = 100;

export class TabNavigation implements Navigation {
  private readonly _before: string[] = [];
  private readonly _listeners = new Set<() => void>();

  /**
   * @param current - The address to begin with.
   * @param openElsewhere - Opens an address in another tab; false where it belongs into this one.
   */
  constructor(
    private _current: string,
    private readonly _openElsewhere: (address: string) => boolean
  ) {}

  get current(): string {
    return this._current;
  }

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  open(address: string, { replace = false } = {}): void {
    if (address === this._current || this._openElsewhere(address)) {
      return;
    }
    if (!replace) {
      this._before.push(this._current);
      this._before.splice(0, this._before.length - MOST_BACK);
    }
    this._show(address);
  }

  back(): void {
    const address = this._before.pop();
    if (address !== undefined) {
      this._show(address);
    }
  }

  href(address: string): string {
    return labHref(address);
  }

  private _show(address: string): void {
    this._current = address;
    this._listeners.forEach(listener => listener());
  }
}

/** Address of JupyterLab that opens an address of the workspace. */
export function labHref(address: string): string {
  const lab = URLExt.join(PageConfig.getBaseUrl(), 'lab');
  return `${lab}?${ADDRESS_PARAMETER}=${encodeURIComponent(address)}`;
}

/** Parameter of JupyterLab's address that has an address of the workspace. */
export const ADDRESS_PARAMETER = 'det';

/** Light or dark, as the user has chosen or the system says. */

import type { Theme, ThemeChoice } from '../workspace/app/host';

const NAME = 'det-native.theme';
const DARK = '(prefers-color-scheme: dark)';

/** The choice is kept in the browser, and other tabs follow it. */
export class PageTheme implements Theme {
  private readonly _listeners = new Set<() => void>();
  private readonly _system: MediaQueryList;
  choice: ThemeChoice;

  constructor(private readonly _window: Window) {
    this.choice = this._kept();
    this._system = _window.matchMedia(DARK);
    this._system.addEventListener('change', () => this._apply());
    _window.addEventListener('storage', ({ key }) => {
      if (key === NAME) {
        this.choice = this._kept();
        this._apply();
      }
    });
    this._apply();
  }

  get shown(): 'light' | 'dark' {
    const dark =
      this.choice === 'system' ? this._system.matches : this.choice === 'dark';
    return dark ? 'dark' : 'light';
  }

  choose(choice: ThemeChoice): void {
    this.choice = choice;
    try {
      this._window.localStorage.setItem(NAME, choice);
    } catch {
      // the browser forbids it: it holds for this page
    }
    this._apply();
  }

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  private _kept(): ThemeChoice {
    try {
      return asChoice(this._window.localStorage.getItem(NAME));
    } catch {
      return 'system';
    }
  }

  private _apply(): void {
    this._window.document.documentElement.dataset.theme = this.shown;
    this._listeners.forEach(listener => listener());
  }
}

function asChoice(text: string | null): ThemeChoice {
  return text === 'light' || text === 'dark' ? text : 'system';
}

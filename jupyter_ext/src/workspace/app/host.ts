/** What the workspace needs of the place where it is shown: a tab of JupyterLab, or a page of its own. */

import type { Address } from '../../shared/api';
import type { Checkpoint, ExperimentId } from '../../shared/model';
import type { Transport } from '../../shared/transport';

/** The address that is shown, and how it changes. */
export interface Navigation {
  /** Such as `/experiments/7/charts?axis=epochs`. */
  readonly current: string;
  /** Call `listener` after each change, the back button's included; returns what ends it. */
  subscribe(listener: () => void): () => void;
  /** Show another address; with `replace` the back button passes over the present one. */
  open(address: string, options?: { replace?: boolean }): void;
  /** Go back to the address before; missing where the browser's own button does. */
  back?(): void;
  /** What a link to an address has as `href`: it works in another tab of the browser, too. */
  href(address: string): string;
}

export type ThemeChoice = 'system' | 'light' | 'dark';

/** Light or dark, where the surroundings leave that to the workspace. */
export interface Theme {
  readonly choice: ThemeChoice;
  readonly shown: 'light' | 'dark';
  choose(choice: ThemeChoice): void;
  /** Call `listener` after each change; returns what ends it. */
  subscribe(listener: () => void): () => void;
}

/** The surroundings of the workspace. */
export interface Host {
  /** `lab`: a tab of JupyterLab, with runs of this machine's own. `page`: the page that the master serves. */
  readonly kind: 'lab' | 'page';
  readonly transport: Transport;
  readonly navigation: Navigation;
  /** Save a file of the master; `name` where its address does not end with it. */
  download(address: Address, name?: string): Promise<void>;
  /** Write code that loads a checkpoint into the open notebook; missing where there is no notebook. */
  loadIntoNotebook?(
    experimentId: ExperimentId,
    checkpoint: Checkpoint
  ): Promise<void>;
  /** Open the executed notebook of an experiment; missing where it can only be downloaded. */
  openNotebook?(experimentId: number): Promise<void>;
  /** Text of the cells of the open notebook, to compare with; null where no notebook is open. */
  notebookCells?(): readonly string[] | null;
  /** Missing where the surroundings have a theme of their own. */
  readonly theme?: Theme;
  /** End the session of this browser; missing where there is none. */
  signOut?(): Promise<void>;
  /** Name the tab of the browser or of JupyterLab; `caption` is shown when it is pointed at. */
  setTitle(title: string, caption?: string): void;
}

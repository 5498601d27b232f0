/** A part of the workspace in a page of a test, with a transport whose answers the test decides. */
import '../shared/browserParts';

import { render } from '@testing-library/preact';
import type { ComponentChildren } from 'preact';

import { Visibility, WorkspaceContext } from '../../src/workspace/app/context';
import type { Host, Navigation } from '../../src/workspace/app/host';
import { LiveExperiments } from '../../src/workspace/data/liveExperiments';
import { DialogHost } from '../../src/workspace/parts/dialog';
import { ToastList, Toasts } from '../../src/workspace/parts/toasts';
import type { ScriptedTransport } from '../shared/scriptedTransport';

class MemoryNavigation implements Navigation {
  private readonly _listeners = new Set<() => void>();

  private readonly _before: string[] = [];

  constructor(public current: string) {}

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  open(address: string, { replace = false } = {}): void {
    if (!replace) {
      this._before.push(this.current);
    }
    this._show(address);
  }

  back(): void {
    this._show(this._before.pop() ?? this.current);
  }

  href(address: string): string {
    return `#${address}`;
  }

  private _show(address: string): void {
    this.current = address;
    this._listeners.forEach(listener => listener());
  }
}

export interface ShownPart {
  readonly navigation: Navigation;
  readonly downloads: string[];
  readonly live: LiveExperiments;
}

/** Draw a part as in the workspace; `host` changes what its surroundings give. */
export function showPart(
  part: ComponentChildren,
  transport: ScriptedTransport,
  address = '/experiments/7',
  host: Partial<Host> = {}
): ShownPart {
  // jsdom has no dialogs.
  Object.assign(HTMLDialogElement.prototype, {
    showModal(this: HTMLDialogElement) {
      this.setAttribute('open', '');
    },
    close(this: HTMLDialogElement) {
      this.removeAttribute('open');
    }
  });
  // Without a layout nothing would be in sight.
  for (const size of ['offsetHeight', 'offsetWidth']) {
    Object.defineProperty(HTMLElement.prototype, size, {
      configurable: true,
      get: () => 600
    });
  }
  const navigation = new MemoryNavigation(address);
  const downloads: string[] = [];
  const visibility = new Visibility();
  visibility.set(true);
  const live = new LiveExperiments(transport);
  const toasts = new Toasts();
  const workspace = {
    host: {
      kind: 'page' as const,
      transport,
      navigation,
      download: (path: string) => {
        downloads.push(path);
        return Promise.resolve();
      },
      setTitle: () => undefined,
      ...host
    },
    visibility,
    live,
    toasts
  };
  render(
    <WorkspaceContext.Provider value={workspace}>
      <div class="det-app">
        {part}
        <DialogHost />
        <ToastList toasts={toasts} />
      </div>
    </WorkspaceContext.Provider>
  );
  return { navigation, downloads, live };
}

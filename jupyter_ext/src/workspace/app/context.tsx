/** What every part of the workspace can reach. */

import { createContext } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';

import type { Api } from '../../shared/api';
import type { LiveExperiments } from '../data/liveExperiments';
import type { Toasts } from '../parts/toasts';
import { type Address, addressText, readAddress } from './address';
import type { Host } from './host';

/** Whether the workspace is seen; what is hidden causes no traffic. */
export class Visibility {
  private readonly _listeners = new Set<() => void>();
  seen = false;

  set(seen: boolean): void {
    this.seen = seen;
    this._listeners.forEach(listener => listener());
  }

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }
}

export interface Workspace {
  readonly host: Host;
  readonly visibility: Visibility;
  /** Tells which experiments have changed. */
  readonly live: LiveExperiments;
  readonly toasts: Toasts;
}

export const WorkspaceContext = createContext<Workspace | null>(null);

export function useWorkspace(): Workspace {
  const workspace = useContext(WorkspaceContext);
  if (workspace === null) {
    throw new Error('A part of the workspace is outside of it.');
  }
  return workspace;
}

/** The master's interface. */
export function useApi(): Api {
  return useWorkspace().host.transport.api;
}

/** Whether the workspace is seen now. */
export function useSeen(): boolean {
  const { visibility } = useWorkspace();
  const [seen, setSeen] = useState(visibility.seen);
  useEffect(() => {
    setSeen(visibility.seen);
    return visibility.subscribe(() => setSeen(visibility.seen));
  }, [visibility]);
  return seen;
}

/** The address that is shown; the part is drawn again when it changes. */
export function useAddress(): Address {
  const { navigation } = useWorkspace().host;
  const [text, setText] = useState(navigation.current);
  useEffect(() => {
    setText(navigation.current);
    return navigation.subscribe(() => setText(navigation.current));
  }, [navigation]);
  return useMemo(() => readAddress(text), [text]);
}

/**
 * A parameter of the address, such as the query of a table, and what changes it.
 *
 * It replaces the address, so that the back button leads to the page before and not through every letter typed.
 *
 * @param options - With `push`, the back button undoes a change: for what opens something. A change may say otherwise.
 */
export function useParameter(
  name: string,
  otherwise = '',
  options: { push?: boolean } = {}
): [string, (value: string, how?: { push: boolean }) => void] {
  const { navigation } = useWorkspace().host;
  const { parameters } = useAddress();
  const change = (value: string, how?: { push: boolean }) => {
    const now = readAddress(navigation.current);
    const changed = { ...now.parameters, [name]: value };
    if (value === otherwise) {
      delete (changed as Record<string, string>)[name];
    }
    const push = how?.push ?? options.push ?? false;
    navigation.open(addressText(now.place, changed), { replace: !push });
  };
  return [parameters[name] ?? otherwise, change];
}

/** Name the tab while a part is shown. */
export function useTitle(title: string, caption?: string): void {
  const { host } = useWorkspace();
  useEffect(() => host.setTitle(title, caption), [host, title, caption]);
}

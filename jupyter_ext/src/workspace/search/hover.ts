/** Which trial is pointed at: the same in all plots of a page. */

import { useEffect, useState } from 'preact/hooks';

export class Hover {
  private readonly _listeners = new Set<() => void>();
  key: string | null = null;

  set(key: string | null): void {
    if (key !== this.key) {
      this.key = key;
      this._listeners.forEach(listener => listener());
    }
  }

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }
}

export function useHovered(hover: Hover): string | null {
  const [key, setKey] = useState(hover.key);
  useEffect(() => {
    setKey(hover.key);
    return hover.subscribe(() => setKey(hover.key));
  }, [hover]);
  return key;
}

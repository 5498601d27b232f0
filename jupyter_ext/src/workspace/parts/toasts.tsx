/** Short words about what a click has done; errors stay until they are closed. */

import { useEffect, useState } from 'preact/hooks';

import { asError } from '../data/useLoad';
import { IconButton } from './button';

const SHOWN_MILLISECONDS = 6000;

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'good' | 'bad';
}

/** The toasts of a workspace. */
export class Toasts {
  private _next = 1;
  private readonly _listeners = new Set<() => void>();
  shown: readonly Toast[] = [];

  /** Say that something was done. */
  say(text: string): void {
    const toast = this._add(text, 'good');
    setTimeout(() => this.close(toast.id), SHOWN_MILLISECONDS);
  }

  /** Say that something failed, with what to do. */
  error(error: unknown): void {
    const { message, remedy, problems } = asError(error);
    const details = problems.map(({ where, what }) => `${where} ${what}`);
    this._add([message, remedy, ...details].filter(Boolean).join(' '), 'bad');
  }

  close(id: number): void {
    this._set(this.shown.filter(toast => toast.id !== id));
  }

  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  private _add(text: string, tone: Toast['tone']): Toast {
    const toast = { id: this._next++, text, tone };
    this._set([...this.shown.slice(-3), toast]);
    return toast;
  }

  private _set(shown: readonly Toast[]): void {
    this.shown = shown;
    this._listeners.forEach(listener => listener());
  }
}

export function ToastList({ toasts }: { toasts: Toasts }) {
  const [shown, setShown] = useState(toasts.shown);
  useEffect(() => toasts.subscribe(() => setShown(toasts.shown)), [toasts]);
  return (
    <div class="det-toasts" role="log" aria-label="What was done">
      {shown.map(({ id, text, tone }) => (
        <div key={id} class="det-toast" data-tone={tone}>
          <span>{text}</span>
          <IconButton
            icon="close"
            label="Close"
            onClick={() => toasts.close(id)}
          />
        </div>
      ))}
    </div>
  );
}

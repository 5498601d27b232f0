/** The front end's side of a widget model, whose kernel is the test. */
import type { AnyModel } from '@anywidget/types';

import type { WidgetState } from '../../src/widget/mounted';

type Handler = (...values: unknown[]) => void;

export class FakeModel {
  /** What was said to the kernel. */
  readonly sent: Array<Record<string, unknown>> = [];
  /** Whether its kernel is gone: nothing can be said any more. */
  dead = false;
  private readonly _handlers = new Map<string, Set<Handler>>();
  private _state: WidgetState;

  constructor(change: Partial<WidgetState> = {}) {
    this._state = {
      view_id: 'view-1',
      experiment_id: 7,
      trial_id: 0,
      master_url: '',
      lost: '',
      waiting: false,
      experiment: null,
      trials: null,
      checkpoints: null,
      curves: null,
      logs: null,
      system: null,
      outputs: null,
      ...change
    };
  }

  /** This, as what anywidget gives. */
  get any(): AnyModel<WidgetState> {
    return this as unknown as AnyModel<WidgetState>;
  }

  get handlers(): number {
    return [...this._handlers.values()].reduce(
      (count, found) => count + found.size,
      0
    );
  }

  get<Key extends keyof WidgetState>(key: Key): WidgetState[Key] {
    return this._state[key];
  }

  on(event: string, handler: Handler): void {
    const handlers = this._handlers.get(event) ?? new Set();
    this._handlers.set(event, handlers.add(handler));
  }

  off(event: string, handler: Handler): void {
    this._handlers.get(event)?.delete(handler);
  }

  send(message: Record<string, unknown>): void {
    if (this.dead) {
      throw new Error('Cannot send');
    }
    this.sent.push(message);
  }

  /** Change its state, as the kernel does, in one message. */
  change(state: Partial<WidgetState>): void {
    this._state = { ...this._state, ...state };
    this.trigger('change');
  }

  /** Say something to the front end. */
  tell(message: Record<string, unknown>, ...buffers: DataView[]): void {
    this.trigger('msg:custom', message, buffers);
  }

  trigger(event: string, ...values: unknown[]): void {
    this._handlers.get(event)?.forEach(handler => handler(...values));
  }
}

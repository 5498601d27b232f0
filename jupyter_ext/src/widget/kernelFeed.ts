/** Follows an experiment by what the kernel tells, where the Jupyter server cannot. */

import type { AnyModel } from '@anywidget/types';

import type { Action, ExperimentSource, ExperimentView } from '../shared/model';
import { TEXTS } from '../shared/texts';
import type { ViewParts } from '../shared/view';
import { emptyView, hasEnded, withConnection, withParts } from '../shared/view';
import type { WidgetState } from './mounted';

/** What the kernel sends: parts that changed since the message before, in whole; all of them in a replay. */
interface KernelMessage {
  readonly type: 'view' | 'lost' | 'answer' | 'saved';
  readonly seq?: number;
  readonly whole?: boolean;
  readonly parts?: ViewParts;
  readonly message?: string;
  readonly id?: number;
  readonly error?: string;
}

const ANSWER_MILLISECONDS = 4000;
/** What a widget model tells when its kernel restarts or closes it. */
const CLOSING_EVENTS = ['comm_live_update', 'comm:close'];

export class KernelFeed implements ExperimentSource {
  private _view: ExperimentView;
  private readonly _listeners = new Set<(view: ExperimentView) => void>();
  private readonly _asked = new Map<number, (error: string) => void>();
  private _last = 0;
  private _questions = 0;
  private _lostSince: number | null = null;
  private readonly _receive = (message: unknown) =>
    this._take(message as KernelMessage);
  private readonly _closing = () => this._lose();

  constructor(private readonly _model: AnyModel<WidgetState>) {
    this._view = emptyView(_model.get('experiment_id'), _model.get('trial_id'));
    _model.on('msg:custom', this._receive);
    CLOSING_EVENTS.forEach(event => _model.on(event, this._closing));
    this.retry();
  }

  get view(): ExperimentView {
    return this._view;
  }

  subscribe(listener: (view: ExperimentView) => void): () => void {
    this._listeners.add(listener);
    listener(this._view);
    return () => this._listeners.delete(listener);
  }

  /** Ask the kernel, which hears it when no cell runs. */
  act(action: Action): Promise<void> {
    const id = (this._questions += 1);
    if (!this._send({ type: 'act', id, action })) {
      return Promise.reject(new Error(TEXTS.kernelGone));
    }
    return new Promise((resolve, reject) => {
      const waiting = setTimeout(() => {
        reject(new Error(TEXTS.kernelBusy));
      }, ANSWER_MILLISECONDS);
      this._asked.set(id, error => {
        clearTimeout(waiting);
        this._asked.delete(id);
        if (error) {
          reject(new Error(error));
        } else {
          resolve();
        }
      });
    });
  }

  retry(): void {
    this._send({ type: 'replay' });
  }

  /** The kernel tells without being asked; what is hidden costs nothing worth a message. */
  pause(): void {}

  resume(): void {}

  dispose(): void {
    this._listeners.clear();
    this._model.off('msg:custom', this._receive);
    CLOSING_EVENTS.forEach(event => this._model.off(event, this._closing));
    this._asked.forEach(answer => answer(TEXTS.viewGone));
  }

  /** Tell the kernel; false if there is none any more. */
  private _send(message: Readonly<Record<string, unknown>>): boolean {
    try {
      this._model.send(message);
      return true;
    } catch {
      return false;
    }
  }

  private _take(message: KernelMessage): void {
    if (message.type === 'answer') {
      this._asked.get(message.id ?? 0)?.(message.error ?? '');
    } else if (message.type === 'lost') {
      this._lost('unreachable', message.message ?? '');
    } else if (message.type === 'view') {
      this._show(message);
    }
  }

  private _show(message: KernelMessage): void {
    const seq = message.seq ?? 0;
    if (!message.whole && seq !== this._last + 1) {
      this.retry(); // parts were missed; those that came are shown meanwhile
    }
    this._last = seq;
    this._lostSince = null;
    const view = withParts(this._view, message.parts ?? {});
    this._emit(
      withConnection(
        view,
        hasEnded(view) ? { kind: 'ended' } : { kind: 'live' }
      )
    );
  }

  /** The kernel is gone, or was for a moment: if it still knows this view, its answer says so. */
  private _lose(): void {
    if (hasEnded(this._view)) {
      return;
    }
    const { id } = this._view;
    const remedy =
      typeof id === 'number'
        ? `Run det.attach(${id}) to follow it again.`
        : 'Run its cell again.';
    this._lost('gone', TEXTS.kernelGone, remedy);
    this.retry();
  }

  private _lost(state: string, message: string, remedy = ''): void {
    this._lostSince ??= Date.now();
    const since = this._lostSince;
    this._emit(
      withConnection(this._view, {
        kind: 'lost',
        since,
        state,
        message,
        remedy
      })
    );
  }

  private _emit(view: ExperimentView): void {
    this._view = view;
    this._listeners.forEach(listener => listener(view));
  }
}

/** Follows an experiment by what the kernel tells, where the Jupyter server cannot. */

import type { AnyModel } from '@anywidget/types';

import type {
  Action,
  ExperimentSource,
  ExperimentView,
  Medium
} from '../shared/model';
import { TEXTS } from '../shared/texts';
import type { ViewParts } from '../shared/view';
import { emptyView, hasEnded, withConnection, withParts } from '../shared/view';
import type { WidgetState } from './mounted';

const ANSWER_MILLISECONDS = 4000;
/** What a widget model tells when its kernel restarts or closes it. */
const CLOSING_EVENTS = ['comm_live_update', 'comm:close'];
/** What changes; the model has all of it, whenever somebody begins to listen. */
const PARTS = [
  'experiment',
  'trials',
  'checkpoints',
  'curves',
  'logs',
  'system',
  'outputs'
] as const satisfies Array<keyof ViewParts>;

/** What the kernel answers, with the bytes of what was asked for. */
type Answered = (error: string, buffers: readonly DataView[]) => void;

export class KernelFeed implements ExperimentSource {
  private _view: ExperimentView;
  private readonly _listeners = new Set<(view: ExperimentView) => void>();
  private readonly _asked = new Map<number, Answered>();
  private _questions = 0;
  private _lostSince: number | null = null;
  private readonly _answered = (
    message: unknown,
    buffers: readonly DataView[] = []
  ) => {
    const { id, error } = message as { id?: number; error?: string };
    this._asked.get(id ?? 0)?.(error ?? '', buffers);
  };
  private readonly _changed = () => this._show();
  private readonly _closing = () => this._lose();

  constructor(private readonly _model: AnyModel<WidgetState>) {
    this._view = emptyView(_model.get('experiment_id'), _model.get('trial_id'));
    _model.on('msg:custom', this._answered);
    _model.on('change', this._changed);
    CLOSING_EVENTS.forEach(event => _model.on(event, this._closing));
    this._show();
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

  /** A kernel hears what it is asked when no cell runs. */
  async act(action: Action): Promise<void> {
    await this._ask({ type: 'act', action });
  }

  async chooseOutputs(trialId: number | null): Promise<void> {
    await this._ask({ type: 'outputs', trial_id: trialId ?? 0 });
  }

  async content({ id, trial_id }: Medium): Promise<Blob> {
    const asked = { type: 'content', trial_id, medium_id: id };
    const [bytes] = await this._ask(asked);
    return new Blob(bytes ? [bytes as DataView<ArrayBuffer>] : []);
  }

  private _ask(
    question: Readonly<Record<string, unknown>>
  ): Promise<readonly DataView[]> {
    const id = (this._questions += 1);
    if (!this._send({ ...question, id })) {
      return Promise.reject(new Error(TEXTS.kernelGone));
    }
    return new Promise((resolve, reject) => {
      const waiting = setTimeout(() => {
        reject(new Error(TEXTS.kernelBusy));
      }, ANSWER_MILLISECONDS);
      this._asked.set(id, (error, buffers) => {
        clearTimeout(waiting);
        this._asked.delete(id);
        if (error) {
          reject(new Error(error));
        } else {
          resolve(buffers);
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
    this._model.off('msg:custom', this._answered);
    this._model.off('change', this._changed);
    CLOSING_EVENTS.forEach(event => this._model.off(event, this._closing));
    this._asked.forEach(answer => answer(TEXTS.viewGone, []));
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

  /** Show what the model has. */
  private _show(): void {
    const known = PARTS.map(name => [name, this._model.get(name)] as const);
    const parts: ViewParts = Object.fromEntries(
      known.filter(([, part]) => part)
    );
    const lost = this._model.get('lost');
    const view = withParts(this._view, parts);
    if (lost) {
      this._view = view;
      this._lost('unreachable', lost);
    } else if (parts.experiment) {
      this._lostSince = null;
      const kind = hasEnded(view) ? 'ended' : 'live';
      this._emit(withConnection(view, { kind }));
    }
  }

  /** The kernel is gone, or was for a moment: if it still knows this view, its answer says so. */
  private _lose(): void {
    if (hasEnded(this._view)) {
      return;
    }
    const remedy = `Run det.attach(${this._view.id}) to follow it again.`;
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

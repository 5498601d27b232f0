/** What a view is fed from, where a test says what there is. */
import type {
  Action,
  ExperimentSource,
  ExperimentView
} from '../../src/shared/model';
import { view } from './examples';

export class FakeSource implements ExperimentSource {
  readonly acts: Action[] = [];
  retries = 0;
  /** What `act` answers with. */
  answer: () => Promise<void> = () => Promise.resolve();
  private readonly _listeners = new Set<(view: ExperimentView) => void>();
  private _view: ExperimentView;

  constructor(change: Partial<ExperimentView> = {}) {
    this._view = view(change);
  }

  get view(): ExperimentView {
    return this._view;
  }

  get listeners(): number {
    return this._listeners.size;
  }

  show(change: Partial<ExperimentView>): void {
    this._view = { ...this._view, ...change };
    this._listeners.forEach(listener => listener(this._view));
  }

  subscribe(listener: (view: ExperimentView) => void): () => void {
    this._listeners.add(listener);
    listener(this._view);
    return () => this._listeners.delete(listener);
  }

  act(action: Action): Promise<void> {
    this.acts.push(action);
    return this.answer();
  }

  retry(): void {
    this.retries += 1;
  }

  pause(): void {}
  resume(): void {}
  dispose(): void {}
}

/** One list of all experiments: those of the master and the runs of this machine's own. */

import { ExperimentListFeed, type ListView } from './listFeed';
import { LocalRuns } from './localRuns';
import type { Experiment } from './model';
import type { Transport } from './transport';

/** The newest experiments, live. Begins with `resume`. How things stand with the master is what its own list says. */
export class AllExperiments {
  private readonly _ofMaster: ExperimentListFeed;
  private readonly _local: LocalRuns;
  private readonly _listeners = new Set<(view: ListView) => void>();
  private _view: ListView;

  constructor(transport: Transport) {
    this._ofMaster = new ExperimentListFeed(transport);
    this._view = this._ofMaster.view;
    this._local = new LocalRuns(transport, () => this._merge());
    this._ofMaster.subscribe(() => this._merge());
  }

  get view(): ListView {
    return this._view;
  }

  /** Call `listener` at every change, and once now; returns what ends it. */
  subscribe(listener: (view: ListView) => void): () => void {
    this._listeners.add(listener);
    listener(this._view);
    return () => this._listeners.delete(listener);
  }

  /** Start the master of this machine; rejects with words for the user. */
  start(): Promise<void> {
    return this._ofMaster.start();
  }

  /** Load everything anew. */
  refresh(): void {
    this._ofMaster.refresh();
    this._local.pause();
    this._local.resume();
  }

  /** No traffic until `resume`. */
  pause(): void {
    this._ofMaster.pause();
    this._local.pause();
  }

  resume(): void {
    this._ofMaster.resume();
    this._local.resume();
  }

  dispose(): void {
    this._listeners.clear();
    this._ofMaster.dispose();
    this._local.dispose();
  }

  private _merge(): void {
    const { view } = this._ofMaster;
    const { experiments: local } = this._local;
    const experiments =
      local.length === 0
        ? view.experiments
        : newestFirst([...view.experiments, ...local]);
    this._view = { ...view, experiments };
    this._listeners.forEach(listener => listener(this._view));
  }
}

/** The experiments of several lists in one, newest first. */
export function newestFirst(all: readonly Experiment[]): Experiment[] {
  return [...all].sort(
    (one, other) => Date.parse(other.created) - Date.parse(one.created)
  );
}

/**
 * What a display shows and keeps where its kernel does not say it, read from the server alone.
 *
 * A kernel that was restarted or has ended knows of no display any more. After a reload of the page the widget manager
 * asks the kernel for its widgets, and one in which a cell runs (that waits for the experiment, most likely) answers when
 * that has ended.
 */
import { dataOf } from '../../shared/api';
import { ExperimentElement } from '../../shared/experimentView';
import { ExperimentFeed } from '../../shared/feed';
import type { Attach, SavedState } from '../../shared/liveViews';
import type {
  ExperimentId,
  ExperimentState,
  TrialState
} from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { savedRoute } from '../../shared/paths';
import { experimentDetail, ofTrial } from '../../shared/requests';
import type { Transport } from '../../shared/transport';
import { watchVisibility } from '../../shared/visibility';

type State = ExperimentState | TrialState;

/** What the kernel has put into the output: the display, and what the master knows it by. */
export interface NamedView {
  readonly view_id: string;
  /** Missing in what an older version saved of a run of its own. */
  readonly experiment_id?: ExperimentId;
  /** 0 for the whole experiment. */
  readonly trial_id?: number;
  /** When it was made there: another master may have another experiment of that number. */
  readonly created?: string;
  /** As it was when the rest of the output was made. */
  readonly state?: string;
}

/** What a notebook keeps of an experiment or a trial, as the server says it. */
export interface SavedForm {
  readonly created: string;
  readonly state: State;
  readonly data: SavedState;
}

/** Whether what an output has is the last word. */
export function isFinal(named: NamedView): boolean {
  return isTerminal(named.state as State);
}

/** The displays of what a master knows. */
export class ServerViews {
  constructor(private readonly _transport: Transport) {}

  /** The view of what was not at its end when it was saved; null where nobody knows it. */
  async find(named: NamedView): Promise<Attach | null> {
    const { experiment_id: id, trial_id: trial = 0, created } = named;
    if (id === undefined || isFinal(named)) {
      return null;
    }
    const { api } = this._transport;
    const params = ofTrial(trial);
    const known =
      trial > 0
        ? await dataOf(api.GET('/api/v1/trials/{trial_id}', { params }))
        : await experimentDetail(api, id);
    return known.created === created
      ? place => show(place, new ExperimentFeed(this._transport, id, trial))
      : null;
  }

  /** Call `listener` when the master may answer again; returns what ends it. */
  onRetry(listener: () => void): () => void {
    return this._transport.onRetry?.(listener) ?? (() => undefined);
  }

  /** What the notebook is to keep of it now; null where nobody knows it. */
  async saved(named: NamedView): Promise<SavedForm | null> {
    const { experiment_id: id, trial_id: trial = 0, created } = named;
    if (id === undefined) {
      return null;
    }
    const form = await this._transport.get<SavedForm>(savedRoute(id, trial));
    return form.created === created ? form : null;
  }
}

function show(place: HTMLElement, feed: ExperimentFeed): () => void {
  const element = new ExperimentElement(place, feed);
  const unwatch = watchVisibility(place, visible =>
    visible ? feed.resume() : feed.pause()
  );
  return () => {
    unwatch();
    element.dispose();
    feed.dispose();
  };
}

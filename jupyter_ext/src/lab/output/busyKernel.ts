/**
 * The live view of a display whose kernel is busy, read from the server alone.
 *
 * After a reload of the page the widget manager asks the kernel for its widgets, and a kernel in which a cell runs (that
 * waits for the experiment, most likely) answers when that has ended.
 */
import { ServerConnection, SessionAPI } from '@jupyterlab/services';
import type { Widget } from '@lumino/widgets';

import { ExperimentElement } from '../../shared/experimentView';
import { ExperimentFeed } from '../../shared/feed';
import type { Attach } from '../../shared/liveViews';
import type { ExperimentDetail, Trial } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import type { Transport } from '../../shared/transport';
import { watchVisibility } from '../../shared/visibility';

/** What the kernel has put into the output: the display, and what the master knows it by. */
export interface NamedView {
  readonly view_id: string;
  /** Missing where no master knows the experiment. */
  readonly experiment_id?: number;
  /** 0 for the whole experiment. */
  readonly trial_id?: number;
  /** When it was made there: another master may have another experiment of that number. */
  readonly created?: string;
}

/** Where an output lives. */
interface Document {
  readonly context?: { readonly path?: string };
}

/** Finds the view of an output without its kernel; null where the kernel will bring it, or nothing goes on. */
export type FindView = (
  output: Widget,
  named: NamedView
) => Promise<Attach | null>;

export function viewsOfBusyKernels(
  transport: Transport,
  settings: ServerConnection.ISettings
): FindView {
  return async (output, named) => {
    const { experiment_id: id, trial_id: trial = 0, created } = named;
    if (id === undefined || !(await isBusy(pathOf(output), settings))) {
      return null;
    }
    const path = trial > 0 ? `trials/${trial}` : `experiments/${id}`;
    const known = await transport.get<ExperimentDetail | Trial>(
      `master/${path}`
    );
    return known.created === created && !isTerminal(known.state)
      ? place => show(place, new ExperimentFeed(transport, id, trial))
      : null;
  };
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

/** Whether a cell runs in the kernel of a notebook, as the server sees it. */
async function isBusy(
  path: string,
  settings: ServerConnection.ISettings
): Promise<boolean> {
  const sessions = path ? await SessionAPI.listRunning(settings) : [];
  const session = sessions.find(each => each.path === path);
  return session?.kernel?.execution_state === 'busy';
}

function pathOf(output: Widget): string {
  for (let each: Widget | null = output; each; each = each.parent) {
    const path = (each as Document).context?.path;
    if (path !== undefined) {
      return path;
    }
  }
  return '';
}

/** Tells the user of the end of experiments whose configuration wants that on the desktop (`notify`). */
import type { ListView } from '../shared/listFeed';
import type { Experiment, ExperimentId } from '../shared/model';
import { isTerminal } from '../shared/model';

const WANTED = { end: true, failure: true } as const;

/** What is shown of an end. */
export interface EndNotice {
  readonly id: ExperimentId;
  readonly failed: boolean;
  readonly text: string;
}

/** Return what is to be shown of an experiment that has ended; null if nobody wants to see it. */
export function noticeOf(experiment: Experiment): EndNotice | null {
  const failed = experiment.state === 'ERROR';
  const entries = experiment.config['notify'];
  const wanted =
    Array.isArray(entries) &&
    entries.some((entry: { desktop?: unknown; on?: unknown }) => {
      const on = Array.isArray(entry.on) ? entry.on : Object.keys(WANTED);
      return (
        entry.desktop === true &&
        (on.includes('end') || (failed && on.includes('failure')))
      );
    });
  if (!wanted) {
    return null;
  }
  const { id, name, state, error } = experiment;
  const title = `Experiment ${id}: ${name}`;
  const words = failed
    ? `has failed${error === null ? '' : `: ${error.type}: ${error.message}`}`
    : state === 'CANCELED'
      ? 'was stopped'
      : 'has completed';
  return { id, failed, text: `${title} ${words}` };
}

/** Watches a list of experiments, and shows each end once; not of those that had ended before it was looked at. */
export class EndNotices {
  private readonly _goingOn = new Set<ExperimentId>();

  constructor(private readonly _show: (notice: EndNotice) => void) {}

  /** Take the list as it now is. */
  take({ experiments }: Pick<ListView, 'experiments'>): void {
    for (const experiment of experiments) {
      if (!isTerminal(experiment.state)) {
        this._goingOn.add(experiment.id);
      } else if (this._goingOn.delete(experiment.id)) {
        const notice = noticeOf(experiment);
        if (notice !== null) {
          this._show(notice);
        }
      }
    }
  }
}

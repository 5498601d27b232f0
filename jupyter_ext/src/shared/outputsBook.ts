/** The outputs of one trial, kept up to date: asked for when an event says that there are more. */

import { dataOf } from './api';
import type { Artifact, ExperimentView, Medium, OutputsState } from './model';
import { outputsTrial } from './outputs';
import { ofTrial } from './requests';
import type { StreamEvent } from './sse';
import type { Transport } from './transport';
import { RequestError } from './transport';

const PAGE = 1000;

/** What of a trial is asked for. */
type Part = 'media' | 'artifacts';
const PARTS: readonly Part[] = ['media', 'artifacts'];

/** Whether an event tells that a trial has logged or written something. */
export function changesOutputs({ event }: Pick<StreamEvent, 'event'>): boolean {
  return PARTS.some(part => part === event);
}

export class OutputsBook {
  private _known: OutputsState | null = null;
  private _chosen: number | null = null;
  private _restarts = 0;
  private readonly _stale = new Set<Part>();

  constructor(private readonly _transport: Transport) {}

  /** Show what this trial has; null for the best one. */
  choose(trialId: number | null): void {
    this._chosen = trialId;
  }

  /** Note what an event tells; it is asked for by `newest`. */
  note({ event, data }: StreamEvent): void {
    const { trial_id: trialId } = data as { trial_id?: number | null };
    const part = PARTS.find(each => each === event);
    if (part && trialId === this._known?.trialId) {
      this._stale.add(part);
    }
  }

  /** What the trial of most interest has by now; `anew` even of what nothing was told. */
  async newest(
    view: ExperimentView,
    signal: AbortSignal,
    anew = false
  ): Promise<{ outputs: OutputsState | null }> {
    const chosen = this._chosen;
    const trialId = chosen ?? outputsTrial(view);
    if (trialId === null) {
      return { outputs: this._known };
    }
    const trial = view.trials.find(({ id }) => id === trialId);
    const restarts = trial?.restarts ?? 0;
    const same = this._known?.trialId === trialId;
    const whole = anew || !same || restarts !== this._restarts;
    const wanted = new Set<Part>(whole ? PARTS : this._stale);
    const before = same ? this._known : null;
    this._stale.clear();
    try {
      const [media, files] = await Promise.all([
        wanted.has('media')
          ? this._media(trialId, whole ? [] : (before?.media ?? []), signal)
          : (before?.media ?? []),
        wanted.has('artifacts')
          ? this._files(trialId, signal)
          : (before?.files ?? [])
      ]);
      if (chosen !== this._chosen) {
        return { outputs: this._known }; // that choice asks for its own
      }
      this._restarts = restarts;
      if (wanted.size > 0 || this._known?.chosen !== (chosen !== null)) {
        this._known = { trialId, chosen: chosen !== null, media, files };
      }
    } catch (error) {
      wanted.forEach(part => this._stale.add(part));
      throw error;
    }
    return { outputs: this._known };
  }

  /** What was logged after what is known. */
  private async _media(
    trialId: number,
    known: readonly Medium[],
    signal: AbortSignal
  ): Promise<readonly Medium[]> {
    const found = [...known];
    for (;;) {
      const query = { after: found.at(-1)?.id ?? 0, limit: PAGE };
      const page = await orNone(
        this._transport.api.GET('/api/v1/trials/{trial_id}/media', {
          params: { ...ofTrial(trialId), query },
          signal
        })
      );
      found.push(...page);
      if (page.length < PAGE) {
        return found;
      }
    }
  }

  private _files(
    trialId: number,
    signal: AbortSignal
  ): Promise<readonly Artifact[]> {
    return orNone(
      this._transport.api.GET('/api/v1/trials/{trial_id}/artifacts', {
        params: ofTrial(trialId),
        signal
      })
    );
  }
}

/** What is asked for; a master of an earlier version has none. */
async function orNone<T>(
  asked: Promise<{ data?: T[]; response: Response }>
): Promise<T[]> {
  try {
    return await dataOf(asked);
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) {
      return [];
    }
    throw error;
  }
}

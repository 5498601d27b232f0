/** What the trial whose log is shown uses of its machine, asked for now and then. */

import type { ExperimentView, SystemState } from './model';
import { isTerminal } from './model';
import { systemSamples } from './requests';
import type { Transport } from './transport';
import { RequestError } from './transport';
import { logTrial } from './view';

/** Samples come every few seconds. */
const LEAST_MILLISECONDS = 5000;
/** So many of each process are enough to draw. */
const POINTS = 250;

export class SystemBook {
  private _known: SystemState | null = null;
  private _asked = 0;
  private _complete = false;

  constructor(private readonly _transport: Transport) {}

  /** Load the samples of the trial of most interest; `anew` even if that was done just now. */
  async newest(
    view: ExperimentView,
    signal: AbortSignal,
    anew = false
  ): Promise<{ system: SystemState | null }> {
    const trialId = view.log?.trialId ?? logTrial(view)?.id;
    if (trialId === undefined) {
      return { system: this._known };
    }
    const same = trialId === this._known?.trialId;
    const rests = Date.now() - this._asked < LEAST_MILLISECONDS && !anew;
    if (same && (this._complete || rests)) {
      return { system: this._known };
    }
    this._asked = Date.now();
    const trial = view.trials.find(({ id }) => id === trialId);
    const samples = await this._ask(trialId, signal);
    this._complete = trial !== undefined && isTerminal(trial.state);
    this._known = { trialId, samples };
    return { system: this._known };
  }

  private async _ask(
    trialId: number,
    signal: AbortSignal
  ): Promise<SystemState['samples']> {
    const { api } = this._transport;
    try {
      return await systemSamples(api, trialId, POINTS, signal);
    } catch (error) {
      if (error instanceof RequestError && error.status === 404) {
        return []; // a master of an earlier version
      }
      throw error;
    }
  }
}

/** What a feed asks for of an experiment, or of one trial of it. */

import type {
  Checkpoint,
  ExperimentDetail,
  ExperimentId,
  MetricCurve,
  Trial
} from './model';
import { TRIALS_WITH_CURVES } from './model';
import { experimentPath, trialPath } from './paths';
import type { Transport } from './transport';

const BUCKETS_OF_TRIAL = 1000;
const BUCKETS_OF_EXPERIMENT = 500;

export class ExperimentRequests {
  private readonly _path: string;
  private readonly _owner: string;

  constructor(
    private readonly _transport: Transport,
    experimentId: ExperimentId,
    private readonly _trialId: number
  ) {
    this._path = experimentPath(experimentId);
    this._owner = _trialId > 0 ? trialPath(experimentId, _trialId) : this._path;
  }

  detail(signal: AbortSignal): Promise<ExperimentDetail> {
    return this._transport.get(this._path, {}, signal);
  }

  async trials(signal: AbortSignal): Promise<Trial[]> {
    return this._trialId > 0
      ? [await this._transport.get<Trial>(this._owner, {}, signal)]
      : this._transport.get<Trial[]>(`${this._path}/trials`, {}, signal);
  }

  checkpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    return this._transport.get(`${this._owner}/checkpoints`, {}, signal);
  }

  curves(signal: AbortSignal): Promise<MetricCurve[]> {
    const query =
      this._trialId > 0
        ? { buckets: BUCKETS_OF_TRIAL }
        : { buckets: BUCKETS_OF_EXPERIMENT, trials: TRIALS_WITH_CURVES };
    return this._transport.get(`${this._owner}/curves`, query, signal);
  }
}

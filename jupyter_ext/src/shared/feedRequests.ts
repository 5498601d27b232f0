/** What a feed asks for of an experiment, or of one trial of it. */

import { type Api, dataOf } from './api';
import type {
  Checkpoint,
  ExperimentDetail,
  ExperimentId,
  MetricCurve,
  Trial
} from './model';
import { TRIALS_WITH_CURVES } from './model';
import { experimentDetail, ofExperiment, ofTrial, trialsOf } from './requests';
import type { Transport } from './transport';

const BUCKETS_OF_TRIAL = 1000;
const BUCKETS_OF_EXPERIMENT = 500;

export class ExperimentRequests {
  private readonly _api: Api;

  constructor(
    { api }: Transport,
    private readonly _experimentId: ExperimentId,
    private readonly _trialId: number
  ) {
    this._api = api;
  }

  detail(signal: AbortSignal): Promise<ExperimentDetail> {
    return experimentDetail(this._api, this._experimentId, signal);
  }

  async trials(signal: AbortSignal): Promise<Trial[]> {
    if (this._trialId === 0) {
      return trialsOf(this._api, this._experimentId, signal);
    }
    const params = ofTrial(this._trialId);
    const path = '/api/v1/trials/{trial_id}';
    return [await dataOf(this._api.GET(path, { params, signal }))];
  }

  checkpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    if (this._trialId === 0) {
      const params = ofExperiment(this._experimentId);
      const path = '/api/v1/experiments/{experiment_id}/checkpoints';
      return dataOf(this._api.GET(path, { params, signal }));
    }
    const params = ofTrial(this._trialId);
    const path = '/api/v1/trials/{trial_id}/checkpoints';
    return dataOf(this._api.GET(path, { params, signal }));
  }

  curves(signal: AbortSignal): Promise<MetricCurve[]> {
    if (this._trialId === 0) {
      const params = {
        ...ofExperiment(this._experimentId),
        query: { buckets: BUCKETS_OF_EXPERIMENT, trials: TRIALS_WITH_CURVES }
      };
      const path = '/api/v1/experiments/{experiment_id}/curves';
      return dataOf(this._api.GET(path, { params, signal }));
    }
    const params = {
      ...ofTrial(this._trialId),
      query: { buckets: BUCKETS_OF_TRIAL }
    };
    const path = '/api/v1/trials/{trial_id}/curves';
    return dataOf(this._api.GET(path, { params, signal }));
  }
}

/** Requests that more than one part of a page makes. */

import type { components } from '../generated/rest';
import { type Address, addressOf, type Api, dataOf } from './api';
import type {
  Action,
  Experiment,
  ExperimentDetail,
  ExperimentId,
  SystemSample,
  Trial
} from './model';

type Schemas = components['schemas'];

/** Parameters of a route of an experiment. */
export function ofExperiment(id: ExperimentId): {
  path: { experiment_id: ExperimentId };
} {
  return { path: { experiment_id: id } };
}

export function experimentDetail(
  api: Api,
  id: ExperimentId,
  signal?: AbortSignal
): Promise<ExperimentDetail> {
  const path = '/api/v1/experiments/{experiment_id}';
  return dataOf(api.GET(path, { params: ofExperiment(id), signal }));
}

/** Pause, resume, stop or kill an experiment. */
export function actOn(
  api: Api,
  id: ExperimentId,
  action: Action
): Promise<Experiment> {
  const path = `/api/v1/experiments/{experiment_id}/${action}` as const;
  return dataOf(api.POST(path, { params: ofExperiment(id) }));
}

/** Change what people write of an experiment, or its priority. */
export function changeExperiment(
  api: Api,
  id: ExperimentId,
  body: Schemas['ExperimentChange']
): Promise<Experiment> {
  const path = '/api/v1/experiments/{experiment_id}';
  return dataOf(api.PATCH(path, { params: ofExperiment(id), body }));
}

/** What deleting an experiment would free, and why it cannot be done. */
export function deletionOf(
  api: Api,
  id: ExperimentId,
  signal?: AbortSignal
): Promise<Schemas['Deletion']> {
  const path = '/api/v1/experiments/{experiment_id}/deletion';
  return dataOf(api.GET(path, { params: ofExperiment(id), signal }));
}

export function deleteExperiment(
  api: Api,
  id: ExperimentId
): Promise<Schemas['Deletion']> {
  const path = '/api/v1/experiments/{experiment_id}';
  return dataOf(api.DELETE(path, { params: ofExperiment(id) }));
}

export function trialsOf(
  api: Api,
  id: ExperimentId,
  signal: AbortSignal
): Promise<Trial[]> {
  const path = '/api/v1/experiments/{experiment_id}/trials';
  return dataOf(api.GET(path, { params: ofExperiment(id), signal }));
}

/** Parameters of a route of a trial. */
export function ofTrial(trialId: number): { path: { trial_id: number } } {
  return { path: { trial_id: trialId } };
}

/** At most so many samples of each process. */
export function systemSamples(
  api: Api,
  trialId: number,
  points: number,
  signal: AbortSignal
): Promise<SystemSample[]> {
  const params = { ...ofTrial(trialId), query: { points } };
  return dataOf(
    api.GET('/api/v1/trials/{trial_id}/system', { params, signal })
  );
}

export function trialSummaries(
  api: Api,
  ids: number[],
  signal: AbortSignal
): Promise<Schemas['TrialSummary'][]> {
  const params = { query: { experiment_id: ids } };
  return dataOf(api.GET('/api/v1/trial-summaries', { params, signal }));
}

/** What a trial has logged by a number. */
export function mediumContent(
  api: Api,
  trialId: number,
  mediumId: number
): Promise<Blob> {
  const path = { trial_id: trialId, medium_id: mediumId };
  return dataOf(
    api.GET('/api/v1/trials/{trial_id}/media/{medium_id}/content', {
      params: { path },
      parseAs: 'blob'
    })
  );
}

/** Address of a file that the code of a trial has written. */
export function artifactAddress(trialId: number, path: string): Address {
  const params = { ...ofTrial(trialId), query: { path } };
  return addressOf('/api/v1/trials/{trial_id}/artifacts/content', params);
}

/** Address of the executed notebook whose training call began an experiment. */
export function notebookAddress(id: ExperimentId): Address {
  const path = '/api/v1/experiments/{experiment_id}/notebook';
  return addressOf(path, ofExperiment(id));
}

/** Address of a file of a checkpoint. */
export function checkpointFileAddress(uuid: string, path: string): Address {
  return addressOf('/api/v1/checkpoints/{uuid}/files/{path}', {
    path: { uuid, path }
  });
}

/** A file of a program, or another part of it. */
export function blobContent(
  api: Api,
  sha256: string,
  signal?: AbortSignal
): Promise<Blob> {
  const params = { path: { sha256 } };
  return dataOf(
    api.GET('/api/v1/blobs/{sha256}', { params, parseAs: 'blob', signal })
  );
}

export function bundleManifest(
  api: Api,
  id: string,
  signal?: AbortSignal
): Promise<Schemas['BundleManifest']> {
  const params = { path: { bundle_id: id } };
  return dataOf(api.GET('/api/v1/bundles/{bundle_id}', { params, signal }));
}

/** The master: its slots, its disk, how many experiments it has. */
export function masterInfo(
  api: Api,
  signal?: AbortSignal
): Promise<Schemas['MasterInfo']> {
  return dataOf(api.GET('/api/v1/master', { signal }));
}

/** An experiment that is followed over a scripted way to its server; no timer may be left of it. */
import { afterEach, beforeEach, expect, vi } from 'vitest';

import { ExperimentFeed } from '../../src/shared/feed';
import type { ExperimentView } from '../../src/shared/model';
import {
  artifact,
  checkpoint,
  curve,
  detail,
  logLine,
  medium,
  systemSample,
  trial
} from './examples';
import { ScriptedTransport } from './scriptedTransport';

export const EXPERIMENT = 'master/experiments/7';
export const CURVES = `${EXPERIMENT}/curves`;
export const LOGS = 'master/trials/3/logs';
export const MEDIA = 'master/trials/3/media';
export const FILES = 'master/trials/3/artifacts';
export const SYSTEM = 'master/trials/3/system';

const feeds: ExperimentFeed[] = [];

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  feeds.splice(0).forEach(feed => feed.dispose());
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

export const settle = () => vi.advanceTimersByTimeAsync(0);

function answers(): Record<string, unknown> {
  return {
    [EXPERIMENT]: detail(),
    [`${EXPERIMENT}/trials`]: [trial()],
    [`${EXPERIMENT}/checkpoints`]: [checkpoint()],
    [CURVES]: [curve()],
    [LOGS]: [logLine('one')],
    [SYSTEM]: [systemSample()],
    [MEDIA]: [medium()],
    [FILES]: [artifact()],
    'master/trials/3': trial(),
    'master/trials/3/checkpoints': [checkpoint()],
    'master/trials/3/curves': [curve()]
  };
}

export function follow(trialId = 0) {
  const transport = new ScriptedTransport(answers());
  const feed = new ExperimentFeed(transport, 7, trialId);
  feeds.push(feed);
  const views: ExperimentView[] = [];
  feed.subscribe(view => views.push(view));
  return { transport, feed, views };
}

export async function live(trialId = 0) {
  const found = follow(trialId);
  await settle();
  expect(found.feed.view.connection.kind).toBe('live');
  found.transport.forget();
  return found;
}

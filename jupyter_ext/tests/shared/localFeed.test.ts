import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { failuresOf } from '../../src/shared/facts';
import { ExperimentFeed } from '../../src/shared/feed';
import type { UserErrorInfo } from '../../src/shared/model';
import { detail, logLine, streamEvent, trial } from './examples';
import { ScriptedTransport } from './scriptedTransport';

const PATH = 'local/experiments/3';
const feeds: ExperimentFeed[] = [];

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  feeds.splice(0).forEach(feed => feed.dispose());
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

it('a local run is read from its own paths, until it is stopped', async () => {
  const transport = new ScriptedTransport({
    [PATH]: detail({ id: 'local-3' }),
    [`${PATH}/trials`]: [trial({ id: 1, experiment_id: 'local-3' })],
    [`${PATH}/checkpoints`]: [],
    [`${PATH}/curves`]: [],
    [`${PATH}/trials/1/logs`]: [logLine('printed')],
    [`${PATH}/stop`]: {}
  });
  const feed = new ExperimentFeed(transport, 'local-3');
  feeds.push(feed);
  await settle();
  expect(feed.view.connection.kind).toBe('live');
  expect(feed.view.logs.map(({ text }) => text)).toEqual(['printed']);
  await feed.act('stop');
  expect(transport.requests.filter(each => each.includes('master'))).toEqual(
    []
  );
  const error = {
    type: 'Stopped',
    message: 'its kernel was restarted or ended, after batch 3 of 9.',
    traceback: ''
  } as UserErrorInfo;
  const stopped = detail({ id: 'local-3', state: 'CANCELED', error });
  transport.answers.set(PATH, stopped);
  transport
    .newestOf('local/events')
    .send(streamEvent('experiment', stopped, null, 'local-3'));
  await settle();
  expect(feed.view.connection.kind).toBe('ended');
  expect(failuresOf(feed.view)).toEqual([
    { headline: `Stopped: ${error.message}`, traceback: '' }
  ]);
});

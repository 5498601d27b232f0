/** A view over a real connection to a server that dies and comes back: nothing is missing, nothing is there twice. */
import type { ServerResponse } from 'node:http';

import { afterEach, beforeEach, expect, it } from 'vitest';

import { ExperimentFeed } from '../../src/shared/feed';
import type { ExperimentView } from '../../src/shared/model';
import { FetchTransport } from '../../src/shared/transport';
import { detail, flatCurve, logLine, trial } from './examples';
import { answerJson, type RunningServer, serve } from './httpServer';

const API = '/det-native/api/master';

/** What a master knows of one experiment; it tells of every report by an event, in pieces of odd sizes. */
class SmallMaster {
  readonly batches: number[] = [];
  ended = false;
  private _server: RunningServer | null = null;
  private _streams: ServerResponse[] = [];
  private _port = 0;

  async start(): Promise<string> {
    this._server = await serve((request, response) => {
      this._answer(
        new URL(request.url ?? '', 'http://x').pathname.slice(API.length),
        response
      );
    }, this._port);
    this._port = Number(new URL(this._server.url).port);
    return this._server.url;
  }

  async die(): Promise<void> {
    this._streams = [];
    await this._server?.stop();
    this._server = null;
  }

  report(batch: number): void {
    this.batches.push(batch);
    this._tell('metrics', { batch });
  }

  finish(): void {
    this.ended = true;
    this._tell('experiment', this._experiment());
  }

  private _tell(event: string, data: unknown): void {
    const body = JSON.stringify({ experiment_id: 7, trial_id: 3, data });
    const text = `id: ${this.batches.length}\nevent: ${event}\ndata: ${body}\n\n`;
    for (const stream of this._streams) {
      for (let at = 0; at < text.length; at += 17) {
        stream.write(text.slice(at, at + 17));
      }
    }
  }

  private _experiment() {
    return detail({
      name: 'größe 🙂',
      state: this.ended ? 'COMPLETED' : 'ACTIVE'
    });
  }

  private _answer(path: string, response: ServerResponse): void {
    if (path === '/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.flushHeaders();
      this._streams.push(response);
      return;
    }
    const answers: Record<string, unknown> = {
      '/experiments/7': this._experiment(),
      '/experiments/7/trials': [trial({ batches: this.batches.at(-1) ?? 0 })],
      '/experiments/7/checkpoints': [],
      '/experiments/7/curves': [flatCurve(this.batches, this.batches)],
      '/trials/3/system': [],
      '/trials/3/media': [],
      '/trials/3/artifacts': [],
      '/trials/3/logs': this.batches.map(batch =>
        logLine(`batch ${batch}`, batch)
      )
    };
    answerJson(response, answers[path]);
  }
}

let master: SmallMaster;
let feed: ExperimentFeed;

beforeEach(async () => {
  master = new SmallMaster();
  feed = new ExperimentFeed(new FetchTransport(await master.start()), 7);
});

afterEach(async () => {
  feed.dispose();
  await master.die();
});

/** Wait for a view that is as wanted. */
function until(
  wanted: (view: ExperimentView) => boolean
): Promise<ExperimentView> {
  return new Promise(resolve => {
    const ends: Array<() => void> = [];
    const end = feed.subscribe(view => {
      if (wanted(view)) {
        ends.forEach(each => each());
        resolve(view);
      }
    });
    ends.push(end);
  });
}

const isLive = (view: ExperimentView) => view.connection.kind === 'live';

it('a lost master is told, and its return brings everything exactly once', async () => {
  await until(isLive);
  master.report(10);
  await until(view => view.trials[0]?.batches === 10);
  master.report(20);
  await until(view => view.trials[0]?.batches === 20);
  await master.die();
  const lost = await until(view => view.connection.kind === 'lost');
  expect(lost.trials[0]?.batches).toBe(20);
  expect(lost.experiment?.name).toBe('größe 🙂');
  expect(lost.connection).toMatchObject({
    message: 'The connection to the master was lost.'
  });
  const said = 'The Jupyter server does not answer.';
  await until(
    ({ connection }) =>
      connection.kind === 'lost' && connection.message === said
  );
  master.report(30);
  master.report(40);
  await master.start();
  feed.retry();
  await until(isLive);
  master.report(50);
  await until(view => view.trials[0]?.batches === 50);
  master.finish();
  const found = await until(view => view.connection.kind === 'ended');
  expect(found.curves[0]?.batch).toEqual([10, 20, 30, 40, 50]);
  expect(found.logs.map(line => line.text)).toEqual(
    [10, 20, 30, 40, 50].map(batch => `batch ${batch}`)
  );
  expect(found.experiment?.state).toBe('COMPLETED');
});

it('an end that nobody told of is found after the return', async () => {
  await until(isLive);
  await master.die();
  await until(view => view.connection.kind === 'lost');
  master.report(10);
  master.finish();
  await master.start();
  const found = await until(view => view.connection.kind === 'ended');
  expect(found.curves[0]?.batch).toEqual([10]);
});

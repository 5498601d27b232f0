/** A real server and the way to it; the server ends with the test. */
import { afterEach, expect, vi } from 'vitest';

import type { StreamEvent } from '../../src/shared/sse';
import { FetchTransport, RequestError } from '../../src/shared/transport';
import { type Handler, type RunningServer, serve } from './httpServer';

export const PREFIX = '/user/ada/det-native/api';

let server: RunningServer | null = null;

/** The server that `connected` has started. */
export const running = (): RunningServer => server!;

afterEach(async () => {
  vi.useRealTimers();
  await server?.stop();
  server = null;
});

/** A way to a real server of these answers. */
export async function connected(
  handler: Handler,
  seconds?: number
): Promise<FetchTransport> {
  server = await serve(handler);
  const headers = () => ({ Authorization: 'token of-jupyter' });
  return new FetchTransport(
    `${server.url}user/ada/`,
    undefined,
    headers,
    seconds
  );
}

/** The error of a request that is refused. */
export async function refused(work: Promise<unknown>): Promise<RequestError> {
  const error: unknown = await work.then(
    () => null,
    (found: unknown) => found
  );
  expect(error).toBeInstanceOf(RequestError);
  return error as RequestError;
}

/** The data of all events of a stream. */
export async function collect(
  stream: AsyncIterable<StreamEvent>
): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const event of stream) {
    found.push(event.data);
  }
  return found;
}

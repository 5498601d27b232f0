/** A real server on this machine, for what can only be tried over a real connection. */
import {
  createServer,
  type IncomingMessage,
  type ServerResponse
} from 'node:http';
import type { AddressInfo } from 'node:net';

export type Handler = (
  request: IncomingMessage,
  response: ServerResponse
) => void;

export interface RunningServer {
  readonly url: string;
  readonly requests: IncomingMessage[];
  /** Break all connections off, as when a server dies. */
  breakOff(): void;
  stop(): Promise<void>;
}

/** Start a server; `port` 0 for any that is free. */
export async function serve(
  handler: Handler,
  port = 0
): Promise<RunningServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    handler(request, response);
  });
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/`,
    requests,
    breakOff: () => server.closeAllConnections(),
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      })
  };
}

export function answerJson(
  response: ServerResponse,
  value: unknown,
  status = 200
): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(value));
}

export async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const piece of request) {
    text += String(piece);
  }
  return JSON.parse(text) as unknown;
}

/** Requests to the server extension, and event streams over it. Knows no JupyterLab. */

import { type Address, type Api, createApi } from './api';
import type { ExperimentId } from './model';
import { extensionPath, type ExtensionRoute, MASTER_EVENTS } from './paths';
import { RequestError } from './requestError';
import { SseParser, StreamEvent } from './sse';

export { RequestError } from './requestError';
export type { StreamEvent } from './sse';

/** What a stream of events is to tell. */
export interface EventsQuery {
  /** Of this experiment only. */
  readonly experiment_id?: ExperimentId;
  /** What happens from now on only. */
  readonly tail?: boolean;
}

export interface StreamOptions {
  query?: EventsQuery;
  signal: AbortSignal;
  /** Called when the server has accepted the stream: from here on nothing is missed. */
  onOpen?: () => void;
}

/** The way to a master, and to the server extension that it is reached by. */
export interface Transport {
  /** The master's interface; what is refused is thrown as a `RequestError`. */
  readonly api: Api;
  /** Read a route of the server extension's own. */
  get<T>(route: ExtensionRoute, signal?: AbortSignal): Promise<T>;
  post<T>(
    route: ExtensionRoute,
    body?: unknown,
    signal?: AbortSignal
  ): Promise<T>;
  /** Where this page finds a route of the master, for links. */
  url(address: Address): string;
  /** The events of the master. */
  stream(options: StreamOptions): AsyncIterable<StreamEvent>;
  /** Call `listener` when another try is worth it: something else of this page got through. Returns what ends it. */
  onRetry?(listener: () => void): () => void;
}

export type FetchFunction = (
  url: string,
  init: RequestInit
) => Promise<Response>;

/** Seconds of silence after which a stream counts as broken; the master says something every 15 s. */
const SILENCE_SECONDS = 45;
const REQUEST_SECONDS = 60;
const JUPYTER = 'Jupyter server';

/** Talks to the server extension by `fetch`, with Jupyter's XSRF header. */
export class FetchTransport implements Transport {
  readonly api = createApi((address, init) =>
    this._answer(this.url(address), init, whole)
  );
  private readonly _base: string;

  /**
   * @param baseUrl - Base URL of the Jupyter server, such as `/user/ada/`.
   * @param fetchFunction - `fetch` of the page, or one that adds what the server wants.
   * @param headers - Added to every request.
   * @param requestSeconds - How long an answer may take; a stream is not limited by it.
   * @param server - Who answers, in words for the user.
   */
  constructor(
    baseUrl: string,
    private readonly _fetch: FetchFunction = (url, init) => fetch(url, init),
    private readonly _headers: () => Readonly<
      Record<string, string>
    > = () => ({}),
    private readonly _requestSeconds = REQUEST_SECONDS,
    private readonly _server = JUPYTER
  ) {
    this._base = `${baseUrl.replace(/\/*$/, '/')}det-native/api/`;
  }

  /** Where this page finds a route of the master, for links. */
  url(address: Address): string {
    return this._base + extensionPath(address);
  }

  get<T>(route: ExtensionRoute, signal?: AbortSignal): Promise<T> {
    return this._json<T>(route, { method: 'GET' }, signal);
  }

  post<T>(
    route: ExtensionRoute,
    body: unknown = {},
    signal?: AbortSignal
  ): Promise<T> {
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' }
    };
    return this._json<T>(route, init, signal);
  }

  async *stream(options: StreamOptions): AsyncGenerator<StreamEvent> {
    const silence = new AbortController();
    const signal = AbortSignal.any([options.signal, silence.signal]);
    const init = { method: 'GET', headers: { Accept: 'text/event-stream' } };
    const watchdog = new Watchdog(SILENCE_SECONDS, () => silence.abort());
    try {
      const response = await this._request(
        this.url(eventsAddress(options.query)),
        init,
        signal
      ).catch((error: unknown) => {
        throw asRequestError(error, options.signal, this._server);
      });
      options.onOpen?.();
      yield* readEvents(response, watchdog, options.signal);
    } finally {
      watchdog.stop();
      silence.abort();
    }
  }

  private _json<T>(
    route: ExtensionRoute,
    init: RequestInit,
    signal?: AbortSignal
  ): Promise<T> {
    const read = async (response: Response) =>
      (response.status === 204 ? undefined : await response.json()) as T;
    return this._answer(this._base + route, { ...init, signal }, read);
  }

  private async _answer<T>(
    url: string,
    init: RequestInit,
    read: (response: Response) => Promise<T>
  ): Promise<T> {
    const limit = new AbortController();
    const watchdog = new Watchdog(this._requestSeconds, () => limit.abort());
    const given = init.signal ?? undefined;
    const signal = given
      ? AbortSignal.any([given, limit.signal])
      : limit.signal;
    try {
      return await read(await this._request(url, init, signal));
    } catch (error) {
      throw asRequestError(error, given, this._server);
    } finally {
      watchdog.stop();
    }
  }

  private async _request(
    url: string,
    init: RequestInit,
    signal: AbortSignal
  ): Promise<Response> {
    const headers = {
      ...xsrfHeader(),
      ...this._headers(),
      ...(init.headers ?? {})
    } as Record<string, string>;
    const response = await this._fetch(url, {
      ...init,
      headers,
      signal,
      credentials: 'same-origin',
      cache: 'no-store'
    });
    if (!response.ok) {
      throw await refusal(response, this._server);
    }
    return response;
  }
}

/** The same answer, of which nothing is left to come: what breaks off, or takes too long, has done so here. */
async function whole(response: Response): Promise<Response> {
  const { status } = response;
  const headers = new Headers(response.headers);
  headers.delete('Content-Length'); // it may be that of compressed content
  const content = status === 204 ? null : await response.arrayBuffer();
  return new Response(content, { status, headers });
}

function eventsAddress(query: EventsQuery = {}): Address {
  const given = Object.entries(query).filter(
    ([, value]) => value !== undefined
  );
  const text = new URLSearchParams(
    given.map(([name, value]) => [name, String(value)])
  );
  return (
    text.size > 0 ? `${MASTER_EVENTS}?${text}` : MASTER_EVENTS
  ) as Address;
}

async function* readEvents(
  response: Response,
  watchdog: Watchdog,
  signal: AbortSignal
): AsyncGenerator<StreamEvent> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  if (!reader) {
    return;
  }
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      watchdog.reset();
      yield* parser.feed(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    if (error instanceof RequestError || signal.aborted) {
      throw error;
    }
    // Who has cut it, the Jupyter server or the master behind it, the next request will show.
    throw new RequestError(
      'The connection to the master was lost.',
      0,
      'unreachable'
    );
  } finally {
    // What is left of a stream that nobody reads any more; it may be broken already.
    await reader.cancel().catch(() => undefined);
  }
}

/** Calls back after seconds without a `reset`. */
class Watchdog {
  private _timer: ReturnType<typeof setTimeout>;

  constructor(
    private readonly _seconds: number,
    private readonly _onTimeout: () => void
  ) {
    this._timer = setTimeout(_onTimeout, _seconds * 1000);
  }

  reset(): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(this._onTimeout, this._seconds * 1000);
  }

  stop(): void {
    clearTimeout(this._timer);
  }
}

/** The XSRF header that Jupyter wants with what changes something; empty where there is no page or no cookie. */
export function xsrfHeader(
  cookies: string = typeof document === 'undefined' ? '' : document.cookie
): Record<string, string> {
  const found = cookies
    .split(';')
    .map(cookie => cookie.trim())
    .findLast(cookie => cookie.startsWith('_xsrf=')); // of two paths' cookies, Jupyter reads the last
  return found
    ? { 'X-XSRFToken': decodeURIComponent(found.slice('_xsrf='.length)) }
    : {};
}

interface RefusalBody {
  state?: unknown;
  message?: unknown;
  remedy?: unknown;
  error?: unknown;
  problems?: unknown;
}

async function refusal(
  response: Response,
  server: string
): Promise<RequestError> {
  const body = await readBody(response);
  if (
    server === JUPYTER &&
    response.status === 404 &&
    text(body.error) === '' &&
    text(body.message) === ''
  ) {
    return NO_EXTENSION();
  }
  const state =
    text(body.state) || (response.status === 403 ? 'unauthorised' : 'refused');
  const message =
    text(body.error) ||
    text(body.message) ||
    `The ${server} answered ${response.status}.`;
  const problems = Array.isArray(body.problems)
    ? body.problems.map(asProblem)
    : [];
  const remedy = text(body.remedy) || defaultRemedy(response.status, server);
  return new RequestError(message, response.status, state, remedy, problems);
}

/** A route that is not there at all: Jupyter's own page, not an answer of ours. */
const NO_EXTENSION = () =>
  new RequestError(
    'The Jupyter server has not loaded the server extension of det_native.',
    404,
    'absent',
    'Run "jupyter server extension enable det_jupyter", then start JupyterLab again.'
  );

async function readBody(response: Response): Promise<RefusalBody> {
  const content = await response.text();
  try {
    const found: unknown = JSON.parse(content);
    return typeof found === 'object' && found !== null ? found : {};
  } catch {
    return {}; // a page of some proxy; the status says enough
  }
}

function asProblem(found: unknown): {
  where: string;
  what: string;
  remedy: string;
} {
  const problem = (
    typeof found === 'object' && found !== null ? found : {}
  ) as Record<string, unknown>;
  return {
    where: text(problem.where),
    what: text(problem.what),
    remedy: text(problem.remedy)
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function defaultRemedy(status: number, server: string): string {
  if (status === 401 || status === 403) {
    return 'Reload the page to sign in again.';
  }
  return status >= 500 ? `Try again; the log of the ${server} says more.` : '';
}

/** Turn what `fetch` throws into words; what was called off on purpose stays what it is. */
export function asRequestError(
  error: unknown,
  signal?: AbortSignal,
  server = JUPYTER
): unknown {
  if (error instanceof RequestError || signal?.aborted) {
    return error;
  }
  return new RequestError(
    `The ${server} does not answer.`,
    0,
    'unreachable',
    'Check that it runs and that the network is there.'
  );
}

/** Requests to the server extension, and event streams over it. Knows no JupyterLab. */

import { SseParser, StreamEvent } from './sse';

export type { StreamEvent } from './sse';

type QueryValue = string | number | boolean | null | undefined;
/** Parameters of a request; those that are undefined or null are left out, and a list repeats its name. */
export type Query = Readonly<
  Record<string, QueryValue | readonly QueryValue[]>
>;

/** An answer with what stands in its head, such as the number of all rows. */
export interface Page<T> {
  readonly body: T;
  readonly head: Headers;
}

export interface StreamOptions {
  query?: Query;
  signal: AbortSignal;
  /** Called when the server has accepted the stream: from here on nothing is missed. */
  onOpen?: () => void;
}

/** Paths are relative to `<base>/det-native/api/`. */
export interface Transport {
  get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>;
  /** As `get`, with the head of the answer. */
  getPage<T>(
    path: string,
    query?: Query,
    signal?: AbortSignal
  ): Promise<Page<T>>;
  post<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T>;
  /** Change something, put it in the place of another, or delete it. */
  send<T>(
    method: 'PATCH' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    query?: Query
  ): Promise<T>;
  /** What a path has that is no JSON. */
  blob(path: string, signal?: AbortSignal): Promise<Blob>;
  /** Address of a path, for links. */
  url(path: string, query?: Query): string;
  stream(path: string, options: StreamOptions): AsyncIterable<StreamEvent>;
  /** Call `listener` when another try is worth it: something else of this page got through. Returns what ends it. */
  onRetry?(listener: () => void): () => void;
}

/** A request that was refused, or that nobody answered. The words are for the user. */
export class RequestError extends Error {
  /**
   * @param status - HTTP status; 0 if there was no answer.
   * @param state - State of the master as `status` says it, or `refused`.
   * @param remedy - What to do.
   * @param problems - What is wrong in the request, thing by thing.
   */
  constructor(
    message: string,
    readonly status: number,
    readonly state: string,
    readonly remedy = '',
    readonly problems: ReadonlyArray<{
      where: string;
      what: string;
      remedy: string;
    }> = []
  ) {
    super(message);
    this.name = 'RequestError';
  }
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

  /** Address of a path, for links. */
  url(path: string, query: Query = {}): string {
    return this._base + path + queryText(query);
  }

  async get<T>(
    path: string,
    query: Query = {},
    signal?: AbortSignal
  ): Promise<T> {
    return this._json<T>(this.url(path, query), { method: 'GET' }, signal);
  }

  async getPage<T>(
    path: string,
    query: Query = {},
    signal?: AbortSignal
  ): Promise<Page<T>> {
    const read = async (response: Response) => ({
      body: (await response.json()) as T,
      head: response.headers
    });
    return this._answer(this.url(path, query), GET, read, signal);
  }

  async post<T>(
    path: string,
    body: unknown = {},
    signal?: AbortSignal
  ): Promise<T> {
    return this._json<T>(this.url(path), withBody('POST', body), signal);
  }

  async send<T>(
    method: 'PATCH' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    query: Query = {}
  ): Promise<T> {
    return this._json<T>(this.url(path, query), withBody(method, body));
  }

  blob(path: string, signal?: AbortSignal): Promise<Blob> {
    const init = { method: 'GET' };
    return this._answer(this.url(path), init, answer => answer.blob(), signal);
  }

  async *stream(
    path: string,
    options: StreamOptions
  ): AsyncGenerator<StreamEvent> {
    const silence = new AbortController();
    const signal = AbortSignal.any([options.signal, silence.signal]);
    const init = { method: 'GET', headers: { Accept: 'text/event-stream' } };
    const watchdog = new Watchdog(SILENCE_SECONDS, () => silence.abort());
    try {
      const response = await this._request(
        this.url(path, options.query),
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
    url: string,
    init: RequestInit,
    signal?: AbortSignal
  ): Promise<T> {
    const read = async (response: Response) =>
      (response.status === 204 ? undefined : await response.json()) as T;
    return this._answer(url, init, read, signal);
  }

  private async _answer<T>(
    url: string,
    init: RequestInit,
    read: (response: Response) => Promise<T>,
    given?: AbortSignal
  ): Promise<T> {
    const limit = new AbortController();
    const watchdog = new Watchdog(this._requestSeconds, () => limit.abort());
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

const GET = { method: 'GET' } as const;

function withBody(method: string, body: unknown): RequestInit {
  return body === undefined
    ? { method }
    : {
        method,
        body: JSON.stringify(body),
        headers: { 'Content-Type': 'application/json' }
      };
}

/** `?name=value&…`, or nothing. */
export function queryText(query: Query): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter(each => each !== undefined && each !== null)
      .map(
        each =>
          `${encodeURIComponent(name)}=${encodeURIComponent(String(each))}`
      )
  );
  return parts.length > 0 ? `?${parts.join('&')}` : '';
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

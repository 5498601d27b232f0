/** Requests to the master that has served this page. */

import { saveAddress } from '../shared/download';
import type { MasterStatus } from '../shared/model';
import type { components } from '../shared/rest';
import { FetchTransport, type Query, RequestError } from '../shared/transport';
import type { Session } from './session';

const UNREACHABLE = () =>
  new RequestError(
    'The master does not answer at this address.',
    0,
    'unreachable',
    'If it was started again, or the way to it was cut, run "det open --page": that opens the page where it is now.'
  );
export const SIGNED_OUT = () =>
  new RequestError(
    'You are signed out.',
    401,
    'unauthorised',
    'Run "det open --page" to sign in again.'
  );

const STOPPED =
  'If it was stopped, "det up" starts it again, and "det open --page" opens its page. Running experiments go on.';
const FAILED = 'Try again; "det logs" shows the log of the master.';

/** A failure inside the master, in its words; here stands no Jupyter server that could say more. */
async function failure(answer: Response): Promise<RequestError> {
  const body: unknown = await answer.json().catch(() => null);
  const error =
    typeof body === 'object' && body !== null && 'error' in body
      ? body.error
      : null;
  return new RequestError(
    typeof error === 'string' && error !== ''
      ? error
      : `The master answered ${answer.status}.`,
    answer.status,
    'refused',
    answer.status === 503 ? STOPPED : FAILED
  );
}

/** Paths are those of the server extension: `master/…` is the master's interface, `status` is asked of it. */
export class MasterTransport extends FetchTransport {
  constructor(
    private readonly _origin: string,
    session: Session,
    fetchFunction: typeof fetch = (...given) => fetch(...given)
  ) {
    const send = async (url: string, init: RequestInit) => {
      const headers = session.headers();
      const answer = await fetchFunction(url, {
        ...init,
        headers: { ...init.headers, ...headers }
      }).catch((error: unknown) => {
        throw init.signal?.aborted ? error : UNREACHABLE();
      });
      if (answer.status === 401) {
        session.forget(headers['X-Det-Session']);
        throw SIGNED_OUT();
      }
      if (answer.status >= 500) {
        throw await failure(answer);
      }
      return answer;
    };
    super(_origin, send, undefined, undefined, 'master');
  }

  override url(path: string, query: Query = {}): string {
    return super
      .url(path, query)
      .replace(
        `${this._origin}/det-native/api/master/`,
        `${this._origin}/api/v1/`
      );
  }

  override async get<T>(
    path: string,
    query: Query = {},
    signal?: AbortSignal
  ): Promise<T> {
    if (path !== 'status') {
      return super.get<T>(path, query, signal);
    }
    const info = await super.get<components['schemas']['Health']>(
      'master/health',
      {},
      signal
    );
    const { version, protocol } = info;
    const status: MasterStatus = {
      state: 'running',
      message: '',
      remedy: '',
      version,
      protocol,
      master: { url: this._origin, version, protocol },
      can_start: false
    };
    return status as T;
  }

  /** Save a file: a link can send no key, so it has a ticket, which opens this address once. */
  async download(path: string, query: Query = {}, name = ''): Promise<void> {
    const address = this.url(path, query).slice(this._origin.length);
    const ticket = await this.post<components['schemas']['Ticket']>(
      'master/session/ticket',
      { address }
    );
    saveAddress(ticket.address, name);
  }
}

/** Requests to the master that has served this page. */

import { type Address, dataOf } from '../shared/api';
import { saveAddress } from '../shared/download';
import type { MasterStatus } from '../shared/model';
import type { ExtensionRoute } from '../shared/paths';
import { FetchTransport, RequestError } from '../shared/transport';
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

/** The master itself: of what the server extension answers there is its `status` only. */
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

  override url(address: Address): string {
    return this._origin + address;
  }

  override async get<T>(
    route: ExtensionRoute,
    signal?: AbortSignal
  ): Promise<T> {
    if (route !== 'status') {
      return super.get<T>(route, signal);
    }
    const info = await dataOf(this.api.GET('/api/v1/health', { signal }));
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
  async download(address: Address, name = ''): Promise<void> {
    const ticket = await dataOf(
      this.api.POST('/api/v1/session/ticket', { body: { address } })
    );
    saveAddress(ticket.address, name);
  }
}

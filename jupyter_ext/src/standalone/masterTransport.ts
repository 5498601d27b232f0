/** Requests to the master that has served this page. */

import type { MasterStatus } from '../shared/model';
import type { components } from '../shared/rest';
import { FetchTransport, type Query } from '../shared/transport';

/** Paths are those of the server extension: `master/…` is the master's interface, `status` is asked of it. */
export class MasterTransport extends FetchTransport {
  constructor(private readonly _origin: string) {
    super(_origin);
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
}

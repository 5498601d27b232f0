/**
 * Who is signed in at the master's page.
 *
 * The master knows a session by a cookie that no script can read and by a key that only this origin can: the key is
 * kept in its `localStorage`, which all tabs share. A link `#signin=CODE&to=/experiments/7` gives both, once.
 */

import { createApi } from '../shared/api';
import { RequestError } from '../shared/requestError';

const KEY = 'det-native.session';

/** What a link to sign in says. */
export interface SignInLink {
  readonly code: string;
  /** Address of the workspace to go on to. */
  readonly to: string;
}

/** Read the part of an address after `#`; null where it is no link to sign in. */
export function readSignIn(hash: string): SignInLink | null {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const code = parameters.get('signin');
  const to = parameters.get('to') ?? '';
  return code ? { code, to: to.startsWith('/') ? to : '' } : null;
}

/** The part of `Storage` that is needed. */
export type KeyStore = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The session of this browser; without a store it lasts as long as the page does. */
export class Session {
  private _key: string | null = null;
  /** Refusals are answers here: what they mean, this page says by itself. */
  private readonly _api = createApi((address, init) =>
    this._fetch(address, {
      ...init,
      headers: { ...init.headers, ...this.headers() },
      credentials: 'same-origin',
      cache: 'no-store'
    })
  );
  private readonly _listeners = new Set<() => void>();

  constructor(
    private readonly _store: KeyStore | null,
    private readonly _fetch: typeof fetch = (...given) => fetch(...given)
  ) {}

  /** Whether there is a key; the master may have forgotten it. */
  get signedIn(): boolean {
    return this._current() !== null;
  }

  /** What each request carries. */
  headers(): Record<string, string> {
    const key = this._current();
    return key === null ? {} : { 'X-Det-Session': key };
  }

  /** Call `listener` when the session has begun or ended here. Returns what ends that. */
  subscribe(listener: () => void): () => void {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }

  /** Use the code of a link; rejects with the master's words. */
  async signIn(code: string): Promise<void> {
    const { data, error, response } = await this._api.POST('/api/v1/session', {
      body: { code }
    });
    if (data === undefined) {
      throw refusalOf(error, response.status);
    }
    this._keep(data.key);
    this._tell();
  }

  /** End the session here and at the master, in all tabs. */
  async signOut(): Promise<void> {
    await this._api.DELETE('/api/v1/session').catch(() => undefined); // a master that is gone has forgotten it already
    this.forget();
  }

  /** The master knows the session no more; `key` is the one that it refused. */
  forget(key?: string): void {
    if (key !== undefined && key !== this._current()) {
      return; // another tab has signed in meanwhile
    }
    this._keep(null);
    this._tell();
  }

  /** Another tab has signed in or out. */
  changedElsewhere(): void {
    this._key = null;
    this._tell();
  }

  private _tell(): void {
    this._listeners.forEach(listener => listener());
  }

  private _current(): string | null {
    try {
      return this._store?.getItem(KEY) ?? this._key;
    } catch {
      return this._key; // the browser forbids it
    }
  }

  private _keep(key: string | null): void {
    this._key = key;
    try {
      if (key === null) {
        this._store?.removeItem(KEY);
      } else {
        this._store?.setItem(KEY, key);
      }
    } catch {
      // the browser forbids it
    }
  }
}

function refusalOf(body: unknown, status: number): RequestError {
  const { error } = Object(body) as { error?: unknown };
  return new RequestError(
    typeof error === 'string' && error !== ''
      ? error
      : `The master answered ${status}.`,
    status,
    'refused'
  );
}

/** The browser's own store; null where it is forbidden. */
export function browserStore(page: Window): KeyStore | null {
  try {
    return page.localStorage;
  } catch {
    return null;
  }
}

/** Whether a change of the store by another tab is about the session. */
export function isAboutSession(event: StorageEvent): boolean {
  return event.key === KEY || event.key === null;
}

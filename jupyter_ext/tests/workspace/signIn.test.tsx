// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/preact';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { addressOf } from '../../src/shared/api';
import { MasterTransport } from '../../src/standalone/masterTransport';
import { HashNavigation } from '../../src/standalone/navigation';
import {
  isAboutSession,
  type KeyStore,
  readSignIn,
  Session
} from '../../src/standalone/session';
import { commandFor, SignedOutScreen } from '../../src/standalone/signedOut';
import { PageTheme } from '../../src/standalone/theme';
import { RequestError } from '../../src/shared/transport';
import { linkTo } from '../../src/workspace/app/topActions';
import type { Theme } from '../../src/workspace/app/host';

class MemoryStore implements KeyStore {
  readonly values = new Map<string, string>();

  getItem(name: string): string | null {
    return this.values.get(name) ?? null;
  }

  setItem(name: string, value: string): void {
    this.values.set(name, value);
  }

  removeItem(name: string): void {
    this.values.delete(name);
  }
}

const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status });

const LIGHT: Theme = {
  choice: 'light',
  shown: 'light',
  choose: () => undefined,
  subscribe: () => () => undefined
};

afterEach(() => {
  cleanup();
  localStorage.clear();
});

describe('a link to sign in', () => {
  it('has a code and an address to go on to', () => {
    expect(readSignIn('#signin=a-b_1&to=/experiments/7/charts%3Fx=1')).toEqual({
      code: 'a-b_1',
      to: '/experiments/7/charts?x=1'
    });
    expect(readSignIn('#signin=c')).toEqual({ code: 'c', to: '' });
  });

  it.each(['', '#/experiments/7', '#signin=', '#/queue?signin=a'])(
    'is not %s',
    hash => expect(readSignIn(hash)).toBeNull()
  );

  it('leads nowhere else', () => {
    expect(readSignIn('#signin=c&to=https://evil.example')?.to).toBe('');
    expect(readSignIn('#signin=c&to=//evil.example')?.to).toBe(
      '//evil.example' // behind a #: an address of the workspace that is unknown
    );
  });

  it('is out of the address bar before it is used', () => {
    window.location.hash = '#signin=secret';
    new HashNavigation(window).replace('/experiments/7');
    expect(window.location.hash).toBe('#/experiments/7');
    new HashNavigation(window).replace('');
    expect(window.location.hash).toBe('#/experiments');
  });
});

describe('the session', () => {
  it('keeps the key where all tabs find it, and sends it', async () => {
    const store = new MemoryStore();
    const asked = vi.fn(() => Promise.resolve(json({ key: 'k' })));
    const session = new Session(store, asked);
    const told = vi.fn();
    session.subscribe(told);
    await session.signIn('code');
    expect(asked).toHaveBeenCalledWith(
      '/api/v1/session',
      expect.objectContaining({ method: 'POST', body: '{"code":"code"}' })
    );
    expect(told).toHaveBeenCalledTimes(1);
    expect(new Session(store).headers()).toEqual({ 'X-Det-Session': 'k' });
  });

  it('says in the words of the master why a link does not sign in', async () => {
    const asked = () => Promise.resolve(json({ error: 'Used already.' }, 401));
    const session = new Session(new MemoryStore(), asked);
    await expect(session.signIn('code')).rejects.toThrow('Used already.');
    expect(session.signedIn).toBe(false);
    const page = () => Promise.resolve(new Response('<html>', { status: 502 }));
    await expect(new Session(null, page).signIn('c')).rejects.toThrow('502');
  });

  it('works without a store, for as long as the page is open', async () => {
    const broken = {
      getItem: () => {
        throw new Error('forbidden');
      },
      setItem: () => {
        throw new Error('forbidden');
      },
      removeItem: () => undefined
    };
    const session = new Session(broken, () =>
      Promise.resolve(json({ key: 'k' }))
    );
    await session.signIn('code');
    expect(session.headers()).toEqual({ 'X-Det-Session': 'k' });
  });

  it('ends in all tabs, though the master is gone', async () => {
    const store = new MemoryStore();
    store.setItem('det-native.session', 'k');
    const session = new Session(store, () => Promise.reject(new Error('gone')));
    await session.signOut();
    expect(session.signedIn).toBe(false);
    expect(store.values.size).toBe(0);
    expect(
      isAboutSession(new StorageEvent('storage', { key: 'det-native.session' }))
    ).toBe(true);
    expect(isAboutSession(new StorageEvent('storage', { key: 'x' }))).toBe(
      false
    );
  });

  it('of another tab is not forgotten with an older one', () => {
    const store = new MemoryStore();
    store.setItem('det-native.session', 'new');
    const session = new Session(store);
    session.forget('old');
    expect(session.signedIn).toBe(true);
    session.forget('new');
    expect(session.signedIn).toBe(false);
  });
});

describe('requests to the master', () => {
  const ORIGIN = 'http://127.0.0.1:4321';

  function signedIn(): Session {
    const store = new MemoryStore();
    store.setItem('det-native.session', 'k');
    return new Session(store);
  }

  it('carry the key', async () => {
    const asked = vi.fn(() => Promise.resolve(json([])));
    const transport = new MasterTransport(ORIGIN, signedIn(), asked);
    const params = { query: { limit: 1 } };
    await transport.api.GET('/api/v1/experiments', { params });
    const [url, init] = asked.mock.calls[0] as unknown as [string, RequestInit];
    expect(url).toBe(`${ORIGIN}/api/v1/experiments?limit=1`);
    expect(init.headers).toMatchObject({ 'X-Det-Session': 'k' });
  });

  it('sign out when the master knows the session no more', async () => {
    const session = signedIn();
    const transport = new MasterTransport(ORIGIN, session, () =>
      Promise.resolve(json({ error: 'x' }, 401))
    );
    const failed = transport.api.GET('/api/v1/experiments');
    await expect(failed).rejects.toThrow('You are signed out.');
    expect(session.signedIn).toBe(false);
  });

  it('say that the master is gone, and what to do', async () => {
    const session = signedIn();
    const transport = new MasterTransport(ORIGIN, session, () =>
      Promise.reject(new TypeError('Failed to fetch'))
    );
    const error = await transport.get('status').catch((why: unknown) => why);
    expect(error).toBeInstanceOf(RequestError);
    expect((error as RequestError).message).toContain('does not answer');
    expect((error as RequestError).remedy).toContain('det open --page');
    expect(session.signedIn).toBe(true);
  });

  it.each([
    [503, { error: 'The master is shutting down.' }, 'det up'],
    [500, { error: 'Something failed inside the master.' }, 'det logs'],
    [502, null, 'det logs']
  ])(
    'say what the master says when it fails: %s',
    async (status, body, command) => {
      const transport = new MasterTransport(ORIGIN, signedIn(), () =>
        Promise.resolve(json(body, status))
      );
      const failed = transport.api.GET('/api/v1/experiments');
      const error = (await failed.catch((why: unknown) => why)) as RequestError;
      expect(error.status).toBe(status);
      expect(error.message).toBe(
        body?.error ?? `The master answered ${status}.`
      );
      expect(error.remedy).toContain(command);
      expect(`${error.message} ${error.remedy}`).not.toContain('Jupyter');
    }
  );

  it.each([404, 500])(
    'speak of the master, where that answers %i without words',
    async status => {
      const transport = new MasterTransport(ORIGIN, signedIn(), () =>
        Promise.resolve(new Response('<html>', { status }))
      );
      const error = await transport.api
        .GET('/api/v1/queue')
        .catch((why: unknown) => why as RequestError);
      const { message, remedy } = error as RequestError;
      expect(message).toBe(`The master answered ${status}.`);
      expect(`${message} ${remedy}`).not.toContain('Jupyter');
    }
  );

  it('download a file by a ticket, not by the key', async () => {
    const address = addressOf('/api/v1/trials/{trial_id}/artifacts/content', {
      path: { trial_id: 3 },
      query: { path: 'w' }
    });
    const asked = vi.fn(() =>
      Promise.resolve(json({ address: `${address}&ticket=t` }))
    );
    const clicked = vi
      .spyOn(HTMLAnchorElement.prototype, 'click')
      .mockImplementation(function (this: HTMLAnchorElement) {
        expect(this.getAttribute('href')).toBe(`${address}&ticket=t`);
        expect(this.download).toBe('weights.bin');
      });
    const transport = new MasterTransport(ORIGIN, signedIn(), asked);
    await transport.download(address, 'weights.bin');
    const [, init] = asked.mock.calls[0] as unknown as [string, RequestInit];
    expect(init.body).toBe(JSON.stringify({ address }));
    expect(clicked).toHaveBeenCalledTimes(1);
  });
});

describe('the page of who is signed out', () => {
  it('says how to sign in, and copies the command', () => {
    const writeText = vi.fn(() => Promise.resolve());
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } });
    render(
      <SignedOutScreen
        theme={LIGHT}
        failure="This link was used already."
        before={false}
        address="/experiments/7/charts"
      />
    );
    expect(screen.getByRole('heading').textContent).toBe('Sign in');
    expect(screen.getByRole('alert').textContent).toContain('used already');
    fireEvent.click(screen.getByRole('button', { name: 'Copy' }));
    expect(writeText).toHaveBeenCalledWith('det open 7 --page');
    vi.unstubAllGlobals();
  });

  it('says that a session has ended', () => {
    render(
      <SignedOutScreen theme={LIGHT} failure="" before address="/queue" />
    );
    expect(screen.getByRole('heading').textContent).toBe('You are signed out');
    expect(screen.queryByRole('alert')).toBeNull();
    expect(screen.getByText(/This tab goes on at this address/)).toBeTruthy();
  });

  it.each([
    ['/experiments/7', 'det open 7 --page'],
    ['/experiments/local-7', 'det open --page'],
    ['/compare/1,2', 'det open --page'],
    ['/nonsense', 'det open --page']
  ])('names the command for %s', (address, command) => {
    expect(commandFor(address)).toBe(command);
  });
});

describe('the theme', () => {
  function systemIs(dark: boolean) {
    vi.stubGlobal('matchMedia', () => ({
      matches: dark,
      addEventListener: () => undefined
    }));
  }

  afterEach(() => vi.unstubAllGlobals());

  it('is that of the system until one is chosen, and is kept', () => {
    systemIs(true);
    const theme = new PageTheme(window);
    expect(theme.shown).toBe('dark');
    const told = vi.fn();
    theme.subscribe(told);
    theme.choose('light');
    expect([theme.shown, told.mock.calls.length]).toEqual(['light', 1]);
    expect(document.documentElement.dataset.theme).toBe('light');
    expect(new PageTheme(window).choice).toBe('light');
  });

  it('is that of the system where something else is kept', () => {
    systemIs(false);
    localStorage.setItem('det-native.theme', 'purple');
    expect(new PageTheme(window).choice).toBe('system');
  });
});

describe('a link to copy', () => {
  it('is whole, for the page and for JupyterLab', () => {
    expect(linkTo('#/experiments/7', 'http://127.0.0.1:1/#/queue')).toBe(
      'http://127.0.0.1:1/#/experiments/7'
    );
    expect(linkTo('/user/a/lab?det=%2Fqueue', 'http://x/user/a/lab')).toBe(
      'http://x/user/a/lab?det=%2Fqueue'
    );
  });
});

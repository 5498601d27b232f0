/** What the page shows: the workspace to who is signed in, and to others how to sign in. */

import { render } from 'preact';

import { RequestError } from '../shared/transport';
import type { Theme } from '../workspace/app/host';
import { WorkspaceElement } from '../workspace/app/workspace';
import { MasterTransport } from './masterTransport';
import { HashNavigation } from './navigation';
import { isAboutSession, readSignIn, type Session } from './session';
import { SignedOutScreen, SigningInScreen } from './signedOut';

/** While the page is open, so often something is asked: the way through SSH stays, and so does the session. */
const PING_MILLISECONDS = 240_000;

export class Page {
  private readonly _navigation: HashNavigation;
  private readonly _transport: MasterTransport;
  private _workspace: WorkspaceElement | null = null;
  private _signsIn = false;
  /** Why the last link has not signed in. */
  private _failure = '';
  /** Whether the workspace was shown since the page was loaded. */
  private _wasSignedIn = false;

  constructor(
    private readonly _root: HTMLElement,
    private readonly _window: Window,
    private readonly _session: Session,
    private readonly _theme: Theme
  ) {
    this._navigation = new HashNavigation(_window);
    this._transport = new MasterTransport(_window.location.origin, _session);
  }

  /** Show what there is to show, and follow the user. */
  start(): void {
    const { document } = this._window;
    this._session.subscribe(() => this._show());
    this._window.addEventListener('storage', event => {
      if (isAboutSession(event)) {
        this._session.changedElsewhere();
      }
    });
    // A link that is pasted into a tab of this page changes only what stands after `#`.
    this._window.addEventListener('hashchange', () => this._takeLink());
    document.addEventListener('visibilitychange', () => this._follow());
    setInterval(() => this._ping(), PING_MILLISECONDS);
    this._takeLink();
    this._show();
  }

  private _takeLink(): void {
    const link = readSignIn(this._window.location.hash);
    if (link === null) {
      return;
    }
    // Out of the address bar and the history before anything else.
    this._navigation.replace(link.to);
    this._signsIn = true;
    this._failure = '';
    this._show();
    this._session
      .signIn(link.code)
      .catch((error: unknown) => (this._failure = wordsOf(error)))
      .finally(() => {
        this._signsIn = false;
        this._show();
      });
  }

  private _show(): void {
    if (this._session.signedIn && !this._signsIn) {
      this._showWorkspace();
      return;
    }
    this._workspace?.dispose();
    this._workspace = null;
    this._window.document.title = 'Sign in · det_native';
    render(
      this._signsIn ? (
        <SigningInScreen theme={this._theme} />
      ) : (
        <SignedOutScreen
          theme={this._theme}
          failure={this._failure}
          before={this._wasSignedIn}
          address={this._navigation.current}
        />
      ),
      this._root
    );
  }

  private _showWorkspace(): void {
    if (this._workspace !== null) {
      return;
    }
    render(null, this._root);
    this._wasSignedIn = true;
    this._workspace = new WorkspaceElement(this._root, {
      kind: 'page',
      transport: this._transport,
      navigation: this._navigation,
      theme: this._theme,
      signOut: () => this._session.signOut(),
      download: (...given) => this._transport.download(...given),
      setTitle: title => (this._window.document.title = `${title} · det_native`)
    });
    this._follow();
  }

  private _follow(): void {
    if (this._window.document.hidden) {
      this._workspace?.pause();
    } else {
      this._workspace?.resume();
    }
  }

  private _ping(): void {
    if (this._workspace !== null) {
      this._transport.api.GET('/api/v1/session').catch(() => undefined); // the workspace says how the connection is
    }
  }
}

function wordsOf(error: unknown): string {
  return error instanceof RequestError
    ? `${error.message} ${error.remedy}`.trim()
    : 'The master does not answer at this address. Run "det open --page" for a new link.';
}

/** The workspace: navigation on top, a page below. The same in a tab of JupyterLab and at the master's own address. */

import { Component, type ComponentChildren, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { connectionText, masterText, TEXTS } from '../../shared/texts';
import { LiveExperiments } from '../data/liveExperiments';
import { Button, IconButton } from '../parts/button';
import { DialogHost } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { Link } from '../parts/link';
import { ToastList, Toasts } from '../parts/toasts';
import { useId } from '../parts/useId';
import type { Place } from './address';
import {
  useAddress,
  useWorkspace,
  Visibility,
  WorkspaceContext
} from './context';
import type { Host } from './host';
import { PageOf } from './pages';
import { useTheme } from './theme';
import { TopActions } from './topActions';

/** Shows the workspace in an element; owns what it has put there. */
export class WorkspaceElement {
  private readonly _live: LiveExperiments;
  private readonly _visibility = new Visibility();

  constructor(
    private readonly _root: HTMLElement,
    host: Host
  ) {
    this._live = new LiveExperiments(host.transport);
    const workspace = {
      host,
      live: this._live,
      visibility: this._visibility,
      toasts: new Toasts()
    };
    render(
      <WorkspaceContext.Provider value={workspace}>
        <App />
      </WorkspaceContext.Provider>,
      this._root
    );
  }

  /** No traffic until `resume`: for what is hidden. */
  pause(): void {
    this._live.pause();
    this._visibility.set(false);
  }

  resume(): void {
    this._live.resume();
    this._visibility.set(true);
  }

  dispose(): void {
    render(null, this._root);
    this._live.dispose();
  }
}

function App() {
  const { host, toasts } = useWorkspace();
  const { place } = useAddress();
  const id = useId();
  // JupyterLab has a main part and a banner of its own.
  const Main = host.kind === 'lab' ? 'div' : 'main';
  return (
    <div
      class="det-app"
      data-host={host.kind}
      data-theme={useTheme(host.theme)}
    >
      <a class="det-skip" href={`#${id}`} onClick={skipToMain}>
        Skip to the content
      </a>
      <TopBar place={place} />
      <ConnectionNotice />
      <Main class="det-main" id={id} tabIndex={-1}>
        <ErrorBoundary key={place.page}>
          <PageOf place={place} />
        </ErrorBoundary>
      </Main>
      <DialogHost />
      <ToastList toasts={toasts} />
    </div>
  );
}

const SECTIONS: ReadonlyArray<{
  address: string;
  label: string;
  pages: ReadonlyArray<Place['page']>;
}> = [
  {
    address: '/experiments',
    label: 'Experiments',
    pages: ['experiments', 'experiment', 'compare']
  },
  { address: '/models', label: 'Models', pages: ['models', 'model'] },
  { address: '/queue', label: 'Queue', pages: ['queue'] },
  { address: '/cluster', label: 'Cluster', pages: ['cluster'] }
];

function TopBar({ place }: { place: Place }) {
  const { kind, navigation } = useWorkspace().host;
  const Bar = kind === 'lab' ? 'div' : 'header';
  return (
    <Bar class="det-topbar">
      {navigation.back && (
        <IconButton
          icon="back"
          label="Back"
          onClick={() => navigation.back?.()}
        />
      )}
      <nav class="det-nav" aria-label="Workspace">
        {SECTIONS.map(({ address, label, pages }) => (
          <Link
            key={address}
            class="det-nav-link"
            to={address}
            aria-current={pages.includes(place.page) ? 'page' : undefined}
          >
            {label}
          </Link>
        ))}
      </nav>
      <TopActions />
    </Bar>
  );
}

/** How the connection is, in words, while it is not well. */
function ConnectionNotice() {
  const { live, toasts } = useWorkspace();
  const [, draw] = useState(0);
  useEffect(
    () => live.subscribeConnection(() => draw(number => number + 1)),
    [live]
  );
  const { connection, status } = live;
  if (connection.kind !== 'lost') {
    return null;
  }
  const down = status !== null && status.state !== 'running';
  const { title, body } = down
    ? masterText(status)
    : { title: '', body: connectionText(connection) };
  return (
    <div class="det-banner" role="status">
      <span>
        <strong>{title}</strong> {body}
      </span>
      {status?.can_start === true && (
        <Button
          onClick={() =>
            void live.start().catch((error: unknown) => toasts.error(error))
          }
        >
          {TEXTS.start}
        </Button>
      )}
      <Button onClick={() => live.retry()}>Try now</Button>
    </div>
  );
}

/** A page that fails says so, and the rest of the workspace goes on. */
class ErrorBoundary extends Component<
  { children: ComponentChildren },
  { error: unknown }
> {
  override state = { error: null as unknown };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    return error === null ? (
      this.props.children
    ) : (
      <ErrorBox
        title="This page could not be drawn."
        error={error}
        onRetry={() => this.setState({ error: null })}
      />
    );
  }
}

function skipToMain(event: Event): void {
  event.preventDefault(); // the address belongs to the workspace
  const link = event.currentTarget as HTMLElement;
  link.parentElement?.querySelector<HTMLElement>('.det-main')?.focus();
}

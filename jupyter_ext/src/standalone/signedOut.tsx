/** The page of who is not signed in. */

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { HOME, readAddress } from '../workspace/app/address';
import type { Theme } from '../workspace/app/host';
import { useTheme } from '../workspace/app/theme';
import { Button } from '../workspace/parts/button';
import { Loading } from '../workspace/parts/state';

function Frame({
  theme,
  children
}: {
  theme: Theme;
  children: ComponentChildren;
}) {
  return (
    <div class="det-app" data-host="page" data-theme={useTheme(theme)}>
      <main class="det-main det-signin">{children}</main>
    </div>
  );
}

export function SigningInScreen({ theme }: { theme: Theme }) {
  return (
    <Frame theme={theme}>
      <div class="det-signin-card">
        <h1>Signing in…</h1>
        <Loading rows={2} label="Signing in" />
      </div>
    </Frame>
  );
}

/**
 * How to sign in.
 *
 * `before`: whether this page was signed in; `address`: where it was, and comes back to.
 */
export function SignedOutScreen({
  theme,
  failure,
  before,
  address
}: {
  theme: Theme;
  /** Why the last link did not sign in. */
  failure: string;
  before: boolean;
  address: string;
}) {
  const command = commandFor(address);
  return (
    <Frame theme={theme}>
      <div class="det-signin-card">
        <p class="det-signin-name">det_native</p>
        <h1>{before ? 'You are signed out' : 'Sign in'}</h1>
        {failure && (
          <p class="det-signin-failure" role="alert">
            {failure}
          </p>
        )}
        <p>
          {before
            ? 'The session has ended, or the master was started again. Running experiments go on.'
            : 'This page shows the experiments of one user, who signs in from a terminal.'}{' '}
          Run this where you use det, and the page opens signed in:
        </p>
        <Command text={command} />
        <ul class="det-signin-notes">
          <li>
            A master on another machine is named as always:{' '}
            <code>DET_MASTER</code>, or <code>-m</code> after <code>det</code>.
          </li>
          <li>
            Without a browser in that terminal, <code>{command} --print</code>{' '}
            prints a link to copy. It works once, within two minutes.
          </li>
          {address !== HOME && (
            <li>This tab goes on at this address once you are signed in.</li>
          )}
        </ul>
      </div>
    </Frame>
  );
}

/** The command that signs in and comes back to an address, as far as it can name it. */
export function commandFor(address: string): string {
  const { place } = readAddress(address);
  return place.page === 'experiment' && typeof place.id === 'number'
    ? `det open ${place.id} --page`
    : 'det open --page';
}

function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => setCopied(false), [text]);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <div class="det-signin-command">
      <code>{text}</code>
      <Button icon="copy" onClick={() => void copy().catch(() => undefined)}>
        {copied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  );
}

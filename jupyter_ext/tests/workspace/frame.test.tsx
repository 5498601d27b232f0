// @vitest-environment jsdom
/** The frame of the workspace and the parts that all pages have. */
import '../shared/browserParts';

import { act, cleanup, render, screen, waitFor } from '@testing-library/preact';
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { Host } from '../../src/workspace/app/host';
import { WorkspaceElement } from '../../src/workspace/app/workspace';
import { ErrorBox } from '../../src/workspace/parts/errorBox';
import { MenuItems } from '../../src/workspace/parts/menu';
import { AWAY, ScriptedTransport } from '../shared/scriptedTransport';
import { showPart } from './shownPart';

const shown: WorkspaceElement[] = [];

afterEach(() => {
  shown.splice(0).forEach(element => element.dispose());
  document.body.replaceChildren();
  cleanup();
});

function open(kind: Host['kind']): HTMLElement {
  const root = document.body.appendChild(document.createElement('div'));
  const navigation = {
    current: '/experiments',
    subscribe: () => () => undefined,
    open: () => undefined,
    href: (address: string) => `#${address}`
  };
  void act(() => {
    shown.push(
      new WorkspaceElement(root, {
        kind,
        transport: new ScriptedTransport({}),
        navigation,
        download: () => Promise.resolve(),
        setTitle: () => undefined
      })
    );
  });
  return root;
}

describe('two tabs of JupyterLab', () => {
  it('have no element of the same id, and no landmarks of a page', () => {
    open('lab');
    open('lab');
    const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(3);
    expect(new Set(ids).size).toBe(ids.length);
    expect(document.querySelector('main, header')).toBeNull();
  });

  it('are at the master a page with its main part', () => {
    const root = open('page');
    expect(root.querySelectorAll('main, header').length).toBe(2);
  });
});

it('labels of a menu stand beside their icons, in a column with those without', () => {
  const item = { onChoose: () => undefined };
  render(
    <MenuItems
      close={() => undefined}
      items={[
        { ...item, label: 'Stop', icon: 'stop' },
        { ...item, label: 'Pinned', checked: true }
      ]}
    />
  );
  const parts = (name: string) =>
    [...screen.getByText(name).parentElement!.children].map(
      ({ className }) => className
    );
  expect(parts('Stop')).toEqual(['det-menu-icon', '']);
  expect(parts('Pinned')).toEqual(['det-menu-icon', '', 'det-menu-end']);
});

it('a part says nothing of a loss that the banner tells of, and is loaded again when the connection is back', async () => {
  const transport = new ScriptedTransport({ status: AWAY });
  const onRetry = vi.fn();
  const { live } = showPart(
    <ErrorBox title="It could not be loaded." error={AWAY} onRetry={onRetry} />,
    transport
  );
  expect(screen.getByRole('alert').textContent).toContain(AWAY.message);
  void act(() => live.resume());
  await waitFor(() => expect(screen.queryByRole('alert')).toBeNull());
  expect(screen.getByText(/as soon as the connection is back/)).toBeTruthy();
  transport.answers.set('status', { state: 'running' });
  void act(() => live.retry());
  await waitFor(() => expect(onRetry).toHaveBeenCalledTimes(1));
  live.dispose();
});

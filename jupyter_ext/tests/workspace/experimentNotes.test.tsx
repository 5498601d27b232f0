// @vitest-environment jsdom
/** Notes under way: they are kept until they are saved or discarded. */
import '../shared/browserParts';

import { cleanup, fireEvent, screen, waitFor } from '@testing-library/preact';
import { afterEach, expect, test, vi } from 'vitest';

import { changeExperiment } from '../../src/shared/requests';
import { MasterTransport } from '../../src/standalone/masterTransport';
import { Session } from '../../src/standalone/session';
import { NotesTab } from '../../src/workspace/experiment/notes';
import type { LiveExperiment } from '../../src/workspace/experiment/useExperiment';
import { detail, view } from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';
import { showPart } from './shownPart';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  localStorage.clear();
});

type Change = LiveExperiment['change'];

function show(
  change: Change = () => Promise.resolve(),
  values: Parameters<typeof detail>[0] = {}
) {
  const experiment = detail({ notes: 'old', ...values });
  const live = {
    view: view({ experiment }),
    change,
    refresh: () => undefined
  } as unknown as LiveExperiment;
  showPart(<NotesTab live={live} />, new ScriptedTransport({}));
}

const editor = () =>
  screen.queryByRole<HTMLTextAreaElement>('textbox', {
    name: 'Notes in Markdown'
  });

function write(text: string): void {
  fireEvent.click(screen.getByRole('button', { name: 'Edit' }));
  fireEvent.input(editor()!, { target: { value: text } });
}

/** Whether the browser asks before the page is left. */
const asks = () =>
  !window.dispatchEvent(new Event('beforeunload', { cancelable: true }));

test('a text that is not saved is there again after a look at another tab, until it is discarded', () => {
  show();
  expect(asks()).toBe(false);
  write('mine');
  expect(asks()).toBe(true);
  cleanup();
  expect(asks()).toBe(false);

  show();
  expect(editor()?.value).toBe('mine');
  expect(screen.getByText(/^Not saved yet: /)).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Discard' }));
  expect(editor()).toBeNull();
  expect(asks()).toBe(false);
  cleanup();

  show();
  expect(editor()).toBeNull();
});

test('a draft is gone once it is saved, and belongs to its experiment alone', async () => {
  const change = vi.fn<Change>(() => Promise.resolve());
  show();
  write('mine');
  cleanup();

  show(undefined, { created: '2020-01-01T00:00:00Z' }); // 7 of another master
  expect(editor()).toBeNull();
  cleanup();

  show(change);
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(editor()).toBeNull());
  expect(change).toHaveBeenCalledWith({ notes: 'mine', notes_before: 'old' });
  cleanup();
  show();
  expect(editor()).toBeNull();
});

test('a session that ends while notes are saved does not cost them', async () => {
  localStorage.setItem('det-native.session', 'k');
  const session = new Session(localStorage);
  const transport = new MasterTransport('http://127.0.0.1:1', session, () =>
    Promise.resolve(new Response('{"error":"x"}', { status: 401 }))
  );
  session.subscribe(() => cleanup()); // as the page does
  show(async values => {
    await changeExperiment(transport.api, 7, values);
  });
  write('mine');
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(session.signedIn).toBe(false));
  expect(editor()).toBeNull();

  show();
  expect(editor()?.value).toBe('mine');
});

test('without a storage a draft lasts as long as the page; a broken one is left out', () => {
  const forbidden = () => {
    throw new Error('forbidden');
  };
  vi.stubGlobal('localStorage', {
    getItem: forbidden,
    setItem: forbidden,
    removeItem: forbidden,
    clear: () => undefined
  });
  show();
  write('mine');
  cleanup();
  show();
  expect(editor()?.value).toBe('mine');
  fireEvent.click(screen.getByRole('button', { name: 'Discard' }));
  cleanup();
  vi.unstubAllGlobals();

  show();
  write('mine');
  cleanup();
  const [key = ''] = Object.keys(localStorage);
  localStorage.setItem(key, '{"text": 1');
  show();
  expect(editor()).toBeNull();
});

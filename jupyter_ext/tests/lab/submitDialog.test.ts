// @vitest-environment jsdom
import '../shared/browserParts';
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { DialogEvent } from '../../src/lab/submission/dialogModel';
import { SubmitDialog } from '../../src/lab/submission/dialog';
import { after } from './facts';

vi.stubGlobal('requestIdleCallback', (work: () => void) => setTimeout(work));

const dialogs: SubmitDialog[] = [];

afterEach(() => {
  dialogs.splice(0).forEach(dialog => dialog.reject());
  document.body.replaceChildren();
});

/** The dialog as `launch` shows it, after these events. */
async function open(...events: DialogEvent[]) {
  const onAccept = vi.fn();
  const dialog = new SubmitDialog('Submit a.ipynb', () => undefined, onAccept);
  dialogs.push(dialog);
  const closed = dialog.launch();
  await vi.waitFor(() => expect(dialog.isAttached).toBe(true));
  dialog.showModel(after(...events));
  const find = (selector: string) =>
    dialog.node.querySelector<HTMLButtonElement>(
      `.jp-Dialog-footer ${selector}`
    )!;
  return {
    dialog,
    closed,
    onAccept,
    accept: find('.jp-mod-accept'),
    content: dialog.node.querySelector<HTMLElement>('.jp-Dialog-content')!
  };
}

/** Press a key where the keyboard is. */
function press(key: string): void {
  document.activeElement?.dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true })
  );
}

it('has its title as its name', async () => {
  const { dialog } = await open();
  expect(dialog.node.getAttribute('aria-label')).toBe('Submit a.ipynb');
});

describe('the keyboard in the dialog', () => {
  it('presses Submit at once; a second press is told, and neither cancels nor closes', async () => {
    const { dialog, accept, onAccept } = await open();
    expect(accept.getAttribute('aria-disabled')).toBe('false');
    accept.focus();
    press('Enter');
    dialog.showModel(after({ type: 'submitted' }));
    expect(accept.getAttribute('aria-disabled')).toBe('true');
    expect(document.activeElement).toBe(accept);
    press('Enter');
    expect(dialog.isAttached).toBe(true);
    expect(onAccept).toHaveBeenCalledTimes(2); // of which the controller makes nothing: it is under way
  });

  it('stays in a field while the dialog learns more', async () => {
    const { dialog } = await open();
    const field = dialog.node.querySelector<HTMLInputElement>('[type=number]');
    field?.focus();
    dialog.showModel(after({ type: 'slots-known', slots: 4, kinds: '' }));
    expect(document.activeElement).toBe(field);
  });

  it('closes with Escape while it is sent', async () => {
    const { dialog, accept, closed } = await open();
    accept.focus();
    dialog.showModel(after({ type: 'submitted' }));
    press('Escape');
    expect((await closed).button.accept).toBe(false);
  });
});

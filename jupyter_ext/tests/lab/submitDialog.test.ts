// @vitest-environment jsdom
import '../shared/browserParts';
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { DialogEvent } from '../../src/lab/submission/dialogModel';
import { SubmitDialog } from '../../src/lab/submission/dialog';
import { after, inspected } from './facts';

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
  it('goes to the dialog when the button that was pressed can no longer be, and back', async () => {
    const { dialog, accept, content } = await open(inspected());
    accept.focus();
    expect(document.activeElement).toBe(accept);
    dialog.showModel(after(inspected(), { type: 'submitted' }));
    expect(accept.disabled).toBe(true);
    expect(document.activeElement).toBe(content);
    dialog.showModel(after(inspected()));
    expect(document.activeElement).toBe(accept);
  });

  it('goes to the dialog from a field that is disabled while it is sent', async () => {
    const { dialog, content } = await open(inspected());
    dialog.node.querySelector<HTMLInputElement>('[type=number]')?.focus();
    expect(document.activeElement?.matches('[type=number]')).toBe(true);
    dialog.showModel(after(inspected(), { type: 'submitted' }));
    expect(document.activeElement).toBe(content);
  });

  it.each([
    ['while the notebook is read', []],
    ['while it is sent', [inspected(), { type: 'submitted' } as const]]
  ])('does not cancel with Enter %s', async (_, events) => {
    const { dialog, accept, onAccept } = await open(inspected());
    accept.focus();
    press('Enter');
    expect(onAccept).toHaveBeenCalledTimes(1);
    dialog.showModel(after(...events));
    press('Enter');
    expect(dialog.isAttached).toBe(true);
    expect(onAccept).toHaveBeenCalledTimes(2); // of which the controller makes nothing: it is not ready
  });

  it('stays in a field that can be used', async () => {
    const { dialog } = await open(inspected());
    const field = dialog.node.querySelector<HTMLInputElement>('[type=number]');
    field?.focus();
    dialog.showModel(after(inspected(), { type: 'slots-known', slots: 4 }));
    expect(document.activeElement).toBe(field);
  });

  it('closes with Escape while it is sent', async () => {
    const { dialog, accept, closed } = await open(inspected());
    accept.focus();
    dialog.showModel(after(inspected(), { type: 'submitted' }));
    press('Escape');
    expect((await closed).button.accept).toBe(false);
  });
});

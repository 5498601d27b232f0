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
    cancel: find('.jp-mod-reject')
  };
}

describe('the keyboard in the dialog', () => {
  it('goes to Cancel when the button that was pressed can no longer be, and back', async () => {
    const { dialog, accept, cancel } = await open(inspected());
    accept.focus();
    expect(document.activeElement).toBe(accept);
    dialog.showModel(after(inspected(), { type: 'submitted' }));
    expect(accept.disabled).toBe(true);
    expect(document.activeElement).toBe(cancel);
    dialog.showModel(after(inspected()));
    expect(document.activeElement).toBe(accept);
  });

  it('goes to Cancel from a field that is disabled while it is sent', async () => {
    const { dialog, cancel } = await open(inspected());
    dialog.node.querySelector<HTMLInputElement>('[type=number]')?.focus();
    expect(document.activeElement?.matches('[type=number]')).toBe(true);
    dialog.showModel(after(inspected(), { type: 'submitted' }));
    expect(document.activeElement).toBe(cancel);
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
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })
    );
    expect((await closed).button.accept).toBe(false);
  });
});

/** The submit dialog: JupyterLab's own, which stays open until the notebook is sent or the user gives up. */
import { Dialog } from '@jupyterlab/apputils';
import type { Message } from '@lumino/messaging';

import { acceptLabel, canSubmit, type DialogModel } from './dialogModel';
import { DialogView } from './dialogView';
import type { DialogEvent } from './dialogModel';

const ACCEPT = 1;

/** A dialog whose accepting button asks first; it closes by `finish`, or when the user cancels. */
export class SubmitDialog extends Dialog<void> {
  private readonly _view: DialogView;
  private _finished = false;

  constructor(
    title: string,
    onEvent: (event: DialogEvent) => void,
    private readonly _onAccept: () => void
  ) {
    const view = new DialogView(onEvent);
    super({
      title,
      body: view,
      hasClose: true,
      defaultButton: ACCEPT,
      buttons: [
        Dialog.cancelButton(),
        Dialog.okButton({ label: 'Submit', ariaLabel: 'Submit the notebook' })
      ]
    });
    this._view = view;
    this.addClass('det-SubmitDialog');
    this.node.setAttribute('aria-label', title); // JupyterLab names only those whose body is a text
  }

  /** Show the model. */
  showModel(model: DialogModel): void {
    this._view.showModel(model);
    const accept = this._acceptButton;
    if (accept === null) {
      return;
    }
    accept.disabled = !canSubmit(model);
    const label = accept.querySelector('.jp-Dialog-buttonLabel');
    if (label !== null && label.textContent !== acceptLabel(model)) {
      label.textContent = acceptLabel(model);
      accept.setAttribute('aria-label', acceptLabel(model));
    }
    this._keepFocus();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._keepFocus();
  }

  /**
   * A disabled button loses the keyboard, and with it Escape; browsers name it as the active one for a while.
   *
   * Until it can be pressed the dialog itself has the keyboard, and not Cancel: Enter pressed twice must not cancel.
   */
  private _keepFocus(): void {
    const accept = this._acceptButton;
    const content = this.node.querySelector<HTMLElement>('.jp-Dialog-content');
    const { activeElement } = document;
    const isLost = activeElement?.matches(':disabled') ?? true;
    const isElsewhere =
      !isLost && this.node.contains(activeElement) && activeElement !== content;
    if (!this.isAttached || content === null || isElsewhere) {
      return;
    }
    content.tabIndex = -1;
    (accept?.disabled === false ? accept : content).focus();
  }

  private get _acceptButton(): HTMLButtonElement | null {
    return this.node.querySelector('.jp-Dialog-footer .jp-mod-accept');
  }

  /** Close: it is done. */
  finish(): void {
    this._finished = true;
    super.resolve(ACCEPT);
  }

  /** The accepting button, and Enter: ask, and stay. */
  override resolve(index?: number): void {
    if (this._finished || (index !== undefined && index !== ACCEPT)) {
      super.resolve(index);
    } else {
      this._onAccept();
    }
  }
}

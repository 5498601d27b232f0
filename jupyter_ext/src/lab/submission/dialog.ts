/** The submit dialog: JupyterLab's own, which stays open until something has begun or the user gives up. */
import { Dialog } from '@jupyterlab/apputils';

import { canSubmit, type DialogEvent, type DialogModel } from './dialogModel';
import { DialogView } from './dialogView';

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
    const accept = this.node.querySelector<HTMLElement>(
      '.jp-Dialog-footer .jp-mod-accept'
    );
    // Not `disabled`: a button that is loses the keyboard, and Enter would reach Cancel or nothing.
    accept?.setAttribute('aria-disabled', String(!canSubmit(model)));
    if (
      this.isAttached &&
      (document.activeElement?.matches(':disabled') ?? true)
    ) {
      accept?.focus(); // the field that had it cannot be used any more
    }
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

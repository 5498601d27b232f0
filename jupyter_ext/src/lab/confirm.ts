/** Ask before something that cannot be undone, in a dialog of JupyterLab. */
import { Dialog, showDialog } from '@jupyterlab/apputils';

export async function confirmEnd(
  question: string,
  action: string,
  what = 'the experiment'
): Promise<boolean> {
  const { button } = await showDialog({
    title: `${action} ${what}?`,
    body: question,
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: action })],
    defaultButton: 0
  });
  return button.accept;
}

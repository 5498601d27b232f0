/** How a notice of an end is shown. */
import { Notification as LabNotification } from '@jupyterlab/apputils';

import type { ExperimentId } from '../shared/model';
import type { EndNotice } from './endNotices';

/** Show a notice in JupyterLab, and by the browser where the user permits that and looks elsewhere. */
export function showNotice(
  { id, failed, text }: EndNotice,
  onOpen: (id: ExperimentId) => void
): void {
  const open = () => onOpen(id);
  LabNotification.emit(text, failed ? 'error' : 'success', {
    autoClose: false,
    actions: [{ label: 'Open', callback: open, displayType: 'accent' }]
  });
  const browser = globalThis.Notification;
  if (document.hidden && browser?.permission === 'granted') {
    new browser(text, { tag: `det-native-${id}` }).onclick = () => {
      window.focus();
      open();
    };
  }
}

/** What the extension's DOM has besides that of the shared views. */
import { make } from '../shared/dom';

/** Something that turns while one waits, with words beside it that a screen reader says. */
export function makeWaiting(text: string): HTMLElement {
  return make(
    'div',
    'det-Waiting',
    { role: 'status' },
    make('span', 'det-Spinner', { 'aria-hidden': 'true' }),
    make('span', '', {}, text)
  );
}

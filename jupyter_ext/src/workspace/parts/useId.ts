/** Names of elements for `aria-…` and `for`. */

import { useState } from 'preact/hooks';

let count = 0;

/** A name that no other element of the page has: Preact's own begin anew in each tab of JupyterLab. */
export function useId(): string {
  return useState(() => `det-id-${++count}`)[0];
}

/** The theme of the surroundings, in parts of the workspace. */

import { useEffect, useState } from 'preact/hooks';

import type { Theme } from './host';

/** `dark` or `light`; undefined where the surroundings have a theme of their own. */
export function useTheme(
  theme: Theme | undefined
): 'light' | 'dark' | undefined {
  const [, draw] = useState(0);
  useEffect(() => theme?.subscribe(() => draw(number => number + 1)), [theme]);
  return theme?.shown;
}

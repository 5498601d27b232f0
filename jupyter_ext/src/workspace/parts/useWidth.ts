/** How wide an element is, for what is drawn by size. */

import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** Width of an element in pixels; `otherwise` before it is known, and where nothing is laid out. */
export function useWidth(
  element: RefObject<HTMLElement>,
  otherwise: number
): number {
  const [width, setWidth] = useState(otherwise);
  useEffect(() => {
    const observed = element.current;
    if (observed === null || typeof ResizeObserver === 'undefined') {
      return undefined;
    }
    const observer = new ResizeObserver(() => {
      if (observed.clientWidth > 0) {
        setWidth(observed.clientWidth);
      }
    });
    observer.observe(observed);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

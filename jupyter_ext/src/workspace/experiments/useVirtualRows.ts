/** Of many rows of one height only those are drawn that are seen. */

import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  elementScroll,
  observeElementOffset,
  type Rect,
  Virtualizer
} from '@tanstack/virtual-core';

const OVERSCAN = 6;
/** What is assumed where the browser tells no size. */
const ASSUMED: Rect = { width: 1000, height: 600 };

type RowVirtualizer = Virtualizer<HTMLElement, HTMLElement>;

export function useVirtualRows(
  scroller: RefObject<HTMLElement>,
  count: number,
  height: number,
  head: number
): RowVirtualizer {
  const [, draw] = useState(0);
  const made = useRef<RowVirtualizer | null>(null);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollMargin: head,
    scrollPaddingStart: head,
    initialRect: ASSUMED,
    scrollToFn: elementScroll,
    observeElementOffset,
    observeElementRect: observeRect,
    onChange: () => draw(number => number + 1)
  };
  made.current ??= new Virtualizer(options);
  const virtualizer = made.current;
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, height]);
  return virtualizer;
}

function observeRect(
  { scrollElement }: RowVirtualizer,
  tell: (rect: Rect) => void
): (() => void) | undefined {
  if (scrollElement === null) {
    return undefined;
  }
  const measure = () => {
    const { offsetWidth, offsetHeight } = scrollElement;
    tell({
      width: offsetWidth || ASSUMED.width,
      height: offsetHeight || ASSUMED.height
    });
  };
  measure();
  if (typeof ResizeObserver === 'undefined') {
    return undefined;
  }
  const observer = new ResizeObserver(measure);
  observer.observe(scrollElement);
  return () => observer.disconnect();
}

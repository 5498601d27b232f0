/** Which rows of a long list are seen: only those are drawn. Rows are of one height. */

import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer
} from '@tanstack/virtual-core';
import type { RefObject } from 'preact';
import { useEffect, useReducer, useRef } from 'preact/hooks';

export interface SeenRows {
  readonly first: number;
  /** Behind the last row that is drawn. */
  readonly end: number;
  /** Pixels of the rows before and behind. */
  readonly before: number;
  readonly behind: number;
  scrollTo(index: number, align?: 'start' | 'center' | 'end'): void;
}

/** Drawn where nothing is known of sizes yet. */
const FIRST_HEIGHT = 600;

export function useVirtualRows(
  scroller: RefObject<HTMLElement>,
  count: number,
  rowHeight: number
): SeenRows {
  const [, draw] = useReducer((number: number) => number + 1, 0);
  const made = useRef<Virtualizer<HTMLElement, Element> | null>(null);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    initialRect: { width: 800, height: FIRST_HEIGHT },
    onChange: () => draw(undefined)
  };
  made.current ??= new Virtualizer<HTMLElement, Element>(options);
  const virtualizer = made.current;
  virtualizer.setOptions(options);
  useEffect(() => virtualizer._didMount(), [virtualizer]);
  useEffect(() => virtualizer._willUpdate());
  const items = virtualizer.getVirtualItems();
  const total = virtualizer.getTotalSize();
  const [head, last] = [items[0], items.at(-1)];
  return {
    first: head?.index ?? 0,
    end: last ? last.index + 1 : Math.min(count, 0),
    before: head?.start ?? 0,
    behind: last ? total - last.end : 0,
    scrollTo: (index, align = 'center') =>
      virtualizer.scrollToIndex(index, { align })
  };
}

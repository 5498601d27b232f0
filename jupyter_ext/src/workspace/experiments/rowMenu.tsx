/** The menu of a row, at the pointer or below its button. */

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { type MenuItem, MenuItems } from '../parts/menu';

export interface RowMenuProps {
  label: string;
  items: readonly MenuItem[];
  /** In the window. */
  x: number;
  y: number;
  onClose: () => void;
}

export function RowMenu({ label, items, x, y, onClose }: RowMenuProps) {
  const root = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: 0, top: 0 });
  useLayoutEffect(() => {
    const element = root.current!;
    const frame = element.offsetParent?.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = element;
    if (frame) {
      const left = Math.min(x - frame.left, frame.width - width - 4);
      const below = y - frame.top;
      const top = below + height > frame.height ? below - height : below;
      setPlace({ left: Math.max(left, 4), top: Math.max(top, 4) });
    }
  }, [x, y]);
  useEffect(() => {
    root.current?.querySelector<HTMLElement>('.det-menu-item')?.focus();
    const outside = (event: Event) => {
      if (!event.composedPath().includes(root.current!)) {
        onClose();
      }
    };
    document.addEventListener('pointerdown', outside, true);
    return () => document.removeEventListener('pointerdown', outside, true);
  }, []);
  return (
    <div
      ref={root}
      class="det-popover det-list-menu"
      role="menu"
      aria-label={label}
      style={{ left: `${place.left}px`, top: `${place.top}px` }}
      onKeyDown={event => {
        if (event.key === 'Escape' || event.key === 'Tab') {
          event.preventDefault();
          event.stopPropagation();
          onClose();
        }
      }}
    >
      <MenuItems items={items} close={onClose} />
    </div>
  );
}

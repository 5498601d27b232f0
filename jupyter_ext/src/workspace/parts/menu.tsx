/** A button that opens a menu: arrow keys move, Escape closes, a click elsewhere too. */

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { Icon, type IconName } from './icon';
import { useId } from './useId';

const MARGIN = 4;

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly danger?: boolean;
  /** Why it cannot be chosen now; shown when pointed at. */
  readonly disabled?: string;
  /** Ticked or not; missing where it is no choice. */
  readonly checked?: boolean;
  onChoose(): void;
}

export interface MenuProps {
  label: string;
  icon?: IconName;
  /** Show only the icon; `label` is its name. */
  compact?: boolean;
  items: readonly MenuItem[];
  disabled?: boolean;
}

export function Menu({ label, icon, compact, items, disabled }: MenuProps) {
  return (
    <Popover
      label={label}
      icon={icon ?? (compact ? 'more' : 'down')}
      compact={compact}
      role="menu"
      disabled={disabled}
    >
      {close => <MenuItems items={items} close={close} />}
    </Popover>
  );
}

/** The entries of a menu, for whatever opens them. */
export function MenuItems({
  items,
  close
}: {
  items: readonly MenuItem[];
  close: () => void;
}) {
  const withIcons = items.some(({ icon }) => icon !== undefined);
  return (
    <div class="det-menu-items" onKeyDown={moveByKeys}>
      {items.map(item => (
        <button
          key={item.label}
          type="button"
          class="det-menu-item"
          role={item.checked === undefined ? 'menuitem' : 'menuitemcheckbox'}
          aria-checked={item.checked}
          aria-disabled={item.disabled !== undefined}
          title={item.disabled}
          data-danger={item.danger}
          tabIndex={-1}
          onClick={() => {
            if (item.disabled === undefined) {
              if (item.checked === undefined) {
                close();
              }
              item.onChoose();
            }
          }}
        >
          {withIcons && (
            <span class="det-menu-icon" aria-hidden="true">
              {item.icon && <Icon name={item.icon} />}
            </span>
          )}
          <span>{item.label}</span>
          {item.checked && (
            <span class="det-menu-end" aria-hidden="true">
              ✓
            </span>
          )}
        </button>
      ))}
    </div>
  );
}

export interface PopoverProps {
  label: string;
  icon?: IconName;
  compact?: boolean;
  role?: 'menu' | 'dialog';
  disabled?: boolean;
  children: (close: () => void) => ComponentChildren;
}

/** A button and what it opens below itself. */
export function Popover({
  label,
  icon,
  compact,
  role = 'dialog',
  disabled,
  children
}: PopoverProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = () => {
    setOpen(false);
    root.current?.querySelector('button')?.focus();
  };
  useLayoutEffect(() => moveIntoSight(root.current), [open]);
  useEffect(() => {
    if (!open) {
      return undefined;
    }
    root.current
      ?.querySelector<HTMLElement>(
        '.det-popover :is(button, input, select, a, textarea)'
      )
      ?.focus();
    const outside = (event: Event) => {
      if (!event.composedPath().includes(root.current!)) {
        setOpen(false);
      }
    };
    document.addEventListener('pointerdown', outside, true);
    return () => document.removeEventListener('pointerdown', outside, true);
  }, [open]);
  return (
    <div
      ref={root}
      class="det-popover-root"
      onKeyDown={event => {
        if (event.key === 'Escape' && open) {
          event.stopPropagation();
          close();
        }
      }}
    >
      <button
        type="button"
        class={`det-btn ${compact ? 'det-icon-btn' : ''}`}
        data-look={compact ? 'quiet' : 'plain'}
        aria-haspopup={role}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={compact ? label : undefined}
        title={compact ? label : undefined}
        disabled={disabled}
        onClick={() => setOpen(!open)}
      >
        {icon && compact && <Icon name={icon} />}
        {!compact && label}
        {!compact && <Icon name={icon ?? 'down'} />}
      </button>
      {open && (
        <div id={id} class="det-popover" role={role} aria-label={label}>
          {children(close)}
        </div>
      )}
    </div>
  );
}

/** What is open stays inside of the workspace, which would scroll sideways otherwise. */
function moveIntoSight(root: HTMLElement | null): void {
  const box = root?.querySelector<HTMLElement>('.det-popover');
  const frame = root?.closest('.det-app')?.getBoundingClientRect();
  if (!box || !frame) {
    return;
  }
  const { left, right } = box.getBoundingClientRect();
  const back = Math.min(frame.right - MARGIN - right, 0);
  const shift = Math.max(back, frame.left + MARGIN - left);
  if (shift !== 0) {
    box.style.transform = `translateX(${shift}px)`;
  }
}

function moveByKeys(event: KeyboardEvent): void {
  const list = event.currentTarget as HTMLElement;
  const items = [...list.querySelectorAll<HTMLElement>('.det-menu-item')];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next: Readonly<Record<string, number>> = {
    ArrowDown: (at + 1) % items.length,
    ArrowUp: (at + items.length - 1) % items.length,
    Home: 0,
    End: items.length - 1
  };
  const index = next[event.key];
  if (index !== undefined) {
    event.preventDefault();
    items[index]?.focus();
  }
}

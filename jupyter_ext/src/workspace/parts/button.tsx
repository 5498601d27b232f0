/** Buttons: with words, or with an icon and a name for screen readers. */

import type { ComponentChildren, JSX } from 'preact';

import { Icon, type IconName } from './icon';

type Native = Omit<JSX.HTMLAttributes<HTMLButtonElement>, 'icon'>;

export interface ButtonProps extends Native {
  children?: ComponentChildren;
  /** `primary`: what the page is for; one at most. `danger`: cannot be undone. `quiet`: without a border. */
  look?: 'plain' | 'primary' | 'danger' | 'quiet';
  icon?: IconName;
  disabled?: boolean;
}

/** A button with words. */
export function Button({
  children,
  look = 'plain',
  icon,
  ...rest
}: ButtonProps) {
  return (
    <button
      {...rest}
      type="button"
      class={`det-btn ${typeof rest.class === 'string' ? rest.class : ''}`}
      data-look={look}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export interface IconButtonProps extends Native {
  icon: IconName;
  /** What it does: read by screen readers, shown when pointed at. */
  label: string;
  disabled?: boolean;
  pressed?: boolean;
}

/** A button that is only an icon. */
export function IconButton({ icon, label, pressed, ...rest }: IconButtonProps) {
  return (
    <button
      {...rest}
      type="button"
      class={`det-btn det-icon-btn ${typeof rest.class === 'string' ? rest.class : ''}`}
      data-look="quiet"
      aria-label={label}
      title={label}
      aria-pressed={pressed}
    >
      <Icon name={icon} />
    </button>
  );
}

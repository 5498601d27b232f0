/** A link inside the workspace: a click stays in it, another tab of the browser works too. */

import type { ComponentChildren, JSX } from 'preact';

import { useWorkspace } from '../app/context';

export interface LinkProps extends JSX.HTMLAttributes<HTMLAnchorElement> {
  /** Address inside the workspace, such as `/experiments/7`. */
  to: string;
  children?: ComponentChildren;
}

export function Link({ to, children, onClick, ...rest }: LinkProps) {
  const { navigation } = useWorkspace().host;
  return (
    <a
      {...rest}
      href={navigation.href(to)}
      onClick={event => {
        onClick?.call(event.currentTarget, event);
        const elsewhere =
          event.button !== 0 ||
          event.metaKey ||
          event.ctrlKey ||
          event.shiftKey ||
          event.altKey;
        if (!event.defaultPrevented && !elsewhere) {
          event.preventDefault();
          navigation.open(to);
        }
      }}
    >
      {children}
    </a>
  );
}

/** What the end of the top bar has: a link to copy, and on the page of its own the theme and signing out. */

import { IconButton } from '../parts/button';
import { Menu } from '../parts/menu';
import { useWorkspace } from './context';
import type { Theme, ThemeChoice } from './host';
import { useTheme } from './theme';

export function TopActions() {
  const { host, toasts } = useWorkspace();
  const copy = async () => {
    const link = linkTo(host.navigation.href(host.navigation.current));
    try {
      await navigator.clipboard.writeText(link);
      toasts.say('The link to this page is copied.');
    } catch {
      toasts.error(
        new Error(`The browser does not let it be copied. The link: ${link}`)
      );
    }
  };
  return (
    <div class="det-topactions">
      <IconButton
        icon="link"
        label="Copy link to this page"
        onClick={() => void copy()}
      />
      {host.theme && <ThemeMenu theme={host.theme} />}
      {host.signOut && (
        <IconButton
          icon="leave"
          label="Sign out"
          onClick={() => void host.signOut?.()}
        />
      )}
    </div>
  );
}

const THEMES: ReadonlyArray<readonly [ThemeChoice, string]> = [
  ['system', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark']
];

function ThemeMenu({ theme }: { theme: Theme }) {
  useTheme(theme); // draws the tick anew
  const items = THEMES.map(([choice, label]) => ({
    label,
    checked: theme.choice === choice,
    onChoose: () => theme.choose(choice)
  }));
  return <Menu label="Theme" icon="theme" compact items={items} />;
}

/** A whole address, for other tabs of the browser. */
export function linkTo(href: string, base: string = location.href): string {
  return new URL(href, base).href;
}

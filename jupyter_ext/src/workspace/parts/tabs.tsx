/** Tabs that are links: each has an address. */

import { Link } from './link';

export interface TabInfo {
  readonly name: string;
  readonly label: string;
  readonly address: string;
  /** How many there are. */
  readonly count?: number;
}

export function TabList({
  tabs,
  current,
  label
}: {
  tabs: readonly TabInfo[];
  current: string;
  label: string;
}) {
  return (
    <nav class="det-tabs" aria-label={label}>
      {tabs.map(tab => (
        <Link
          key={tab.name}
          class="det-tab"
          to={tab.address}
          aria-current={tab.name === current ? 'page' : undefined}
        >
          {tab.label}
          {tab.count !== undefined && (
            <span class="det-tab-count">{tab.count.toLocaleString('en')}</span>
          )}
        </Link>
      ))}
    </nav>
  );
}

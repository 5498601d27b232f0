/** Choose of many names, with a search. */

import { useState } from 'preact/hooks';

const MOST = 100;

export interface ListChoiceProps {
  label: string;
  choices: ReadonlyArray<{ name: string; count: number }>;
  chosen: readonly string[];
  empty: string;
  onChoose: (name: string) => void;
}

export function ListChoice({
  label,
  choices,
  chosen,
  empty,
  onChoose
}: ListChoiceProps) {
  const [search, setSearch] = useState('');
  const words = search.toLowerCase();
  const found = choices.filter(({ name }) =>
    name.toLowerCase().includes(words)
  );
  if (choices.length === 0) {
    return <p class="det-list-hint">{empty}</p>;
  }
  return (
    <div class="det-list-choice">
      <input
        class="det-input"
        type="search"
        aria-label={`Search ${label.toLowerCase()}`}
        placeholder="Search…"
        value={search}
        onInput={event => setSearch(event.currentTarget.value)}
      />
      <ul class="det-list-list" aria-label={label}>
        {found.slice(0, MOST).map(({ name, count }) => (
          <li key={name}>
            <button
              type="button"
              class="det-menu-item"
              aria-pressed={chosen.includes(name)}
              onClick={() => onChoose(name)}
            >
              <span class="det-list-text" title={name}>
                {chosen.includes(name) && '✓ '}
                {name}
              </span>
              <span class="det-list-id det-menu-end">
                {count.toLocaleString('en-US')}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {found.length > MOST && (
        <p class="det-list-hint">
          {(found.length - MOST).toLocaleString('en-US')} more: search for them.
        </p>
      )}
      {found.length === 0 && <p class="det-list-hint">None has this name.</p>}
    </div>
  );
}

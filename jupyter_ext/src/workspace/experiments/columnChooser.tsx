/** Which columns the table has, in which order: with a search over all that there are. */

import { useState } from 'preact/hooks';

import { Button, IconButton } from '../parts/button';
import { Popover } from '../parts/menu';
import { choosable, type Column, moved, readColumns } from './columns';
import type { ExperimentNames } from './rows';

const MOST = 60;

export interface ColumnChooserProps {
  columns: readonly Column[];
  names: ExperimentNames | null;
  onColumns: (columns: readonly Column[]) => void;
}

export function ColumnChooser(props: ColumnChooserProps) {
  return (
    <Popover label="Columns" icon="columns">
      {() => <Chooser {...props} />}
    </Popover>
  );
}

function Chooser({ columns, names, onColumns }: ColumnChooserProps) {
  const [search, setSearch] = useState('');
  const words = search.toLowerCase();
  const shown = new Set(columns.map(({ key }) => key));
  return (
    <div class="det-list-choice det-list-columns">
      <input
        class="det-input"
        type="search"
        aria-label="Search columns"
        placeholder="Search: a metric, a hyperparameter, size…"
        value={search}
        onInput={event => setSearch(event.currentTarget.value)}
      />
      {search === '' && (
        <section>
          <h3>Shown</h3>
          <ul class="det-list-list">
            {columns.map((column, at) => (
              <li key={column.key} class="det-list-shown">
                <span class="det-list-text" title={column.label.slice(0, 300)}>
                  {column.label.slice(0, 100)}
                </span>
                {at > 0 && (
                  <>
                    <IconButton
                      icon="up"
                      label={`Move ${column.label.slice(0, 100)} up`}
                      disabled={at === 1}
                      onClick={() =>
                        onColumns(moved(columns, column.key, at - 1))
                      }
                    />
                    <IconButton
                      icon="down"
                      label={`Move ${column.label.slice(0, 100)} down`}
                      disabled={at === columns.length - 1}
                      onClick={() =>
                        onColumns(moved(columns, column.key, at + 1))
                      }
                    />
                    <IconButton
                      icon="close"
                      label={`Hide ${column.label.slice(0, 100)}`}
                      onClick={() =>
                        onColumns(
                          columns.filter(({ key }) => key !== column.key)
                        )
                      }
                    />
                  </>
                )}
              </li>
            ))}
          </ul>
          <Button
            look="quiet"
            icon="reset"
            onClick={() => onColumns(readColumns(''))}
          >
            Columns as they were
          </Button>
        </section>
      )}
      {choosable(names).map(({ title, columns: all }) => {
        const found = all.filter(
          ({ key, label }) =>
            !shown.has(key) && `${title} ${label}`.toLowerCase().includes(words)
        );
        return found.length === 0 ? null : (
          <section key={title}>
            <h3>{title}</h3>
            <ul class="det-list-list">
              {found.slice(0, MOST).map(column => (
                <li key={column.key}>
                  <button
                    type="button"
                    class="det-menu-item"
                    onClick={() => onColumns([...columns, column])}
                  >
                    <span
                      class="det-list-text"
                      title={column.label.slice(0, 300)}
                    >
                      {column.label.slice(0, 200)}
                    </span>
                    <span class="det-list-id det-menu-end">add</span>
                  </button>
                </li>
              ))}
            </ul>
            {found.length > MOST && (
              <p class="det-list-hint">
                {(found.length - MOST).toLocaleString('en-US')} more: search for
                them.
              </p>
            )}
          </section>
        );
      })}
    </div>
  );
}

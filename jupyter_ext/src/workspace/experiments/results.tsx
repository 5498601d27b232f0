/** The table, or what is shown in its place: loading, failed, empty. */

import { useState } from 'preact/hooks';

import { useWorkspace } from '../app/context';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Loading } from '../parts/state';
import { nextSort } from './columns';
import { NoExperiments, NoneMatch } from './empty';
import { isFiltered, NO_FILTERS } from './filters';
import type { Book, RowBook } from './rowBook';
import { allOrNone, NOTHING } from './selection';
import { keepWidths, keptWidths } from './storage';
import { Table } from './table';
import type { TableState } from './tableState';
import type { LoadedGroups } from './useGroups';
import type { Rows } from './useRows';

export interface ResultsProps {
  book: RowBook;
  view: Book;
  groups: LoadedGroups;
  table: Rows;
  state: TableState;
  width: number;
}

export function Results({
  book,
  view,
  groups,
  table,
  state,
  width
}: ResultsProps) {
  const { host } = useWorkspace();
  const [widths, setWidths] = useState(keptWidths);
  const { filters, sort, columns, group } = state;
  const grouped = group !== '';
  const { items, ids, selection } = table;
  // What is wrong with the query is said under the search.
  const stale = view.problem !== null;
  const error = view.error ?? (grouped && !stale ? groups.error : null);
  const retry = () => {
    book.reload();
    groups.reload();
  };
  if (items.length === 0) {
    if (error !== null) {
      return (
        <ErrorBox
          title="The experiments could not be loaded."
          error={error}
          onRetry={retry}
        />
      );
    }
    if (stale) {
      return null;
    }
    if (!view.answered || (grouped && groups.data === null)) {
      return <Loading rows={12} label="Loading the experiments…" />;
    }
    return isFiltered(filters) ? (
      <NoneMatch onClear={() => state.setFilters(NO_FILTERS)} />
    ) : (
      <NoExperiments kind={host.kind} />
    );
  }
  const count = ids.filter(id => selection.ids.has(id)).length;
  const selectAll = () => table.setSelection(allOrNone(selection, ids));
  return (
    <>
      {error !== null && (
        <div class="det-list-failed" role="alert">
          <span>
            Not everything could be loaded: {error.message} {error.remedy}
          </span>
          <Button onClick={retry}>Try again</Button>
        </div>
      )}
      <Table
        items={items}
        stale={stale}
        rows={table.rows}
        columns={columns}
        head={{
          widths,
          sort,
          all: count === 0 ? 'none' : count === ids.length ? 'all' : 'some',
          onSort: column => state.change({ sort: nextSort(column, sort) }),
          onSelectAll: selectAll,
          onColumns: state.setColumns,
          onWidth: (key, value, done) => {
            const changed = { ...widths, [key]: value };
            setWidths(changed);
            if (done) {
              keepWidths(changed);
            }
          }
        }}
        selected={selection.ids}
        by={group}
        measure={groups.measure}
        active={table.active}
        question={JSON.stringify([filters, sort, group])}
        width={width}
        handlers={table.handlers}
        onSee={seen => book.see(seen)}
        onActive={table.setActive}
        onToggleGroup={table.toggleGroup}
        onSelectAll={selectAll}
        onEscape={() => table.setSelection(NOTHING)}
      />
    </>
  );
}

/** The page of all experiments: search, filters, table, groups, and what is done with several. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { useApi, useTitle, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { IconButton } from '../parts/button';
import { BulkBar } from './bulkBar';
import { ColumnChooser } from './columnChooser';
import { needed } from './columns';
import { Failures } from './failures';
import { Chips, FilterMenus } from './filterBar';
import { GroupControl } from './groupControl';
import { Results } from './results';
import { rowActions } from './rowActions';
import { RowMenu } from './rowMenu';
import { SearchBox } from './searchBox';
import { NOTHING } from './selection';
import { SortControl } from './sortControl';
import { Summary } from './summary';
import { NARROW } from './table';
import { useTableState } from './tableState';
import { useBook } from './useBook';
import { useBulk } from './useBulk';
import { useGroups } from './useGroups';
import { useRows } from './useRows';
import { Views } from './views';

export function ExperimentsPage() {
  useTitle('Experiments');
  const { host, toasts } = useWorkspace();
  const api = useApi();
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const state = useTableState();
  const { filters, sort, columns } = state;
  const { book, view } = useBook({ filters, sort, ...needed(columns) });
  // Later than the table, which is to be there first.
  const begun = useRef(false);
  begun.current ||= !view.loading;
  const names = useLoad(begun.current ? 'names' : null, signal =>
    dataOf(api.GET('/api/v1/experiment-names', { signal }))
  );
  const groups = useGroups(state, names.data, view);
  const bulk = useBulk(root, () => {
    book.reload();
    names.reload();
  });
  const table = useRows(view, groups.data, state, host.navigation);
  const menu = table.menu;
  const narrow = width > 0 && width < NARROW;
  const [tools, setTools] = useState(false);
  return (
    <div
      ref={root}
      class="det-list-page"
      data-narrow={width > 0 && width < 700}
    >
      <h1 class="det-hidden">Experiments</h1>
      <div class="det-list-bar-top">
        <div class="det-list-search-row">
          <SearchBox
            query={filters.query}
            names={names.data}
            problem={view.problem}
            onQuery={query => state.setFilters({ ...filters, query })}
            onFocus={() => names.reload()}
          />
          {narrow && (
            <IconButton
              icon="filter"
              label="Filters, sorting and columns"
              pressed={tools}
              aria-expanded={tools}
              onClick={() => setTools(!tools)}
            />
          )}
        </div>
        <div class="det-list-tools" hidden={narrow && !tools}>
          <FilterMenus
            filters={filters}
            names={names.data}
            onFilters={state.setFilters}
          />
          <span class="det-list-tools-end">
            {narrow && <SortControl state={state} />}
            <GroupControl
              group={state.group}
              measure={groups.measure}
              names={names.data}
              onChange={state.change}
            />
            <ColumnChooser
              columns={columns}
              names={names.data}
              onColumns={state.setColumns}
            />
            <Views state={state} />
          </span>
        </div>
        <Chips filters={filters} onFilters={state.setFilters} />
        {table.selection.ids.size > 0 ? (
          <BulkBar
            ids={[...table.selection.ids]}
            rows={table.rows}
            names={names.data}
            bulk={bulk}
            onClear={() => table.setSelection(NOTHING)}
          />
        ) : (
          <Summary
            view={view}
            groups={state.group === '' ? null : groups.data}
            busy={bulk.busy}
          />
        )}
      </div>
      <Results
        book={book}
        view={view}
        groups={groups}
        table={table}
        state={state}
        width={width}
      />
      {menu && (
        <RowMenu
          key={`${menu.id} ${menu.x} ${menu.y}`}
          label={`Actions for ${String(menu.id)}`}
          items={rowActions(menu.id, table.rows.get(menu.id), {
            navigation: host.navigation,
            toasts,
            bulk
          })}
          x={menu.x}
          y={menu.y}
          onClose={() => {
            table.closeMenu();
            root.current
              ?.querySelector<HTMLElement>('.det-list-table')
              ?.focus({ preventScroll: true });
          }}
        />
      )}
      {bulk.failures && (
        <Failures {...bulk.failures} onClose={bulk.closeFailures} />
      )}
    </div>
  );
}

/** The width of an element, followed; 0 where the browser does not tell. */
function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null || typeof ResizeObserver === 'undefined') {
      return undefined;
    }
    setWidth(target.clientWidth);
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return width;
}

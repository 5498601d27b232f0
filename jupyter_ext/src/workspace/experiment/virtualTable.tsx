/** A table of any length whose columns sort; only the rows that are seen are drawn. */

import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';

import { useVirtualRows } from './virtualRows';

export interface TableColumn<Row> {
  readonly name: string;
  readonly title: string;
  readonly numeric?: boolean;
  /** By what it sorts; missing where it does not. What has none stands last. */
  readonly value?: (row: Row) => number | string | null | undefined;
  readonly cell: (row: Row) => ComponentChildren;
}

export const ROW_HEIGHT = 33;

/** Rows in an order such as `name`, or `-name` for the other way round. */
export function sorted<Row>(
  rows: readonly Row[],
  columns: ReadonlyArray<TableColumn<Row>>,
  order: string
): readonly Row[] {
  const down = order.startsWith('-');
  const name = down ? order.slice(1) : order;
  const value = columns.find(column => column.name === name)?.value;
  if (!value) {
    return rows;
  }
  const missing = (each: unknown) =>
    each === null ||
    each === undefined ||
    (typeof each === 'number' && Number.isNaN(each));
  return rows.toSorted((first, second) => {
    const [one, other] = [value(first), value(second)];
    if (missing(one) || missing(other)) {
      return Number(missing(one)) - Number(missing(other));
    }
    const compared =
      typeof one === 'number' && typeof other === 'number'
        ? one - other
        : String(one).localeCompare(String(other), 'en', { numeric: true });
    return down ? -compared : compared;
  });
}

export function VirtualTable<Row>({
  label,
  rows,
  columns,
  rowKey,
  order,
  onOrder,
  selected,
  onSelect
}: {
  label: string;
  rows: readonly Row[];
  columns: ReadonlyArray<TableColumn<Row>>;
  rowKey: (row: Row) => string;
  order: string;
  onOrder: (order: string) => void;
  selected?: string;
  onSelect?: (key: string) => void;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const seen = useVirtualRows(scroller, rows.length, ROW_HEIGHT);
  const sortOf = (name: string) =>
    order === name ? 'ascending' : order === `-${name}` ? 'descending' : 'none';
  return (
    <div
      ref={scroller}
      class="det-exp-scroll"
      tabIndex={0}
      role="region"
      aria-label={`${label}, scrolls`}
    >
      <table
        class="det-grid det-exp-table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
      >
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ name, title, numeric, value }) => (
              <th
                key={name}
                scope="col"
                class={numeric ? 'det-number' : undefined}
                aria-sort={value ? sortOf(name) : undefined}
              >
                {value ? (
                  <button
                    type="button"
                    class="det-exp-sort"
                    onClick={() => onOrder(order === name ? `-${name}` : name)}
                  >
                    {title}
                    <span aria-hidden="true">
                      {sortOf(name) === 'ascending'
                        ? ' ↑'
                        : sortOf(name) === 'descending'
                          ? ' ↓'
                          : ''}
                    </span>
                  </button>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {seen.before > 0 && (
            <tr aria-hidden="true" style={{ height: `${seen.before}px` }} />
          )}
          {rows.slice(seen.first, seen.end).map((row, index) => {
            const key = rowKey(row);
            return (
              <tr
                key={key}
                data-key={key}
                aria-rowindex={seen.first + index + 2}
                data-selected={key === selected}
                onClick={event => {
                  if (
                    onSelect &&
                    !(event.target as Element).closest('a, button, input')
                  ) {
                    onSelect(key);
                  }
                }}
              >
                {columns.map(({ name, numeric, cell }) => (
                  <td key={name} class={numeric ? 'det-number' : undefined}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {seen.behind > 0 && (
            <tr aria-hidden="true" style={{ height: `${seen.behind}px` }} />
          )}
        </tbody>
      </table>
    </div>
  );
}

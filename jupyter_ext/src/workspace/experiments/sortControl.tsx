/** By what the table is sorted, where cards have no heads to click. */

import { IconButton } from '../parts/button';
import { Select } from '../parts/field';
import { readSort } from './columns';
import type { TableState } from './tableState';

export function SortControl({ state }: { state: TableState }) {
  const { columns, sort, change } = state;
  const now = readSort(sort);
  const sortable = columns.filter(({ order }) => order !== null);
  const write = (order: string, down: boolean) =>
    change({ sort: order === '' ? '' : `${order} ${down ? 'desc' : 'asc'}` });
  return (
    <>
      <Select
        label="Sort by"
        value={now?.order ?? ''}
        choices={[
          { value: '', label: 'Newest first' },
          ...sortable.map(({ order, label }) => ({
            value: order ?? '',
            label: label.slice(0, 60)
          }))
        ]}
        onChange={order =>
          write(
            order,
            sortable.find(column => column.order === order)?.descending ?? false
          )
        }
      />
      {now && (
        <IconButton
          icon={now.descending ? 'down' : 'up'}
          label={now.descending ? 'Greatest first' : 'Smallest first'}
          onClick={() => write(now.order, !now.descending)}
        />
      )}
    </>
  );
}

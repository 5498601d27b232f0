/** What a plot shows, as a table: for screen readers, to be copied, and as a CSV file. */

import { useState } from 'preact/hooks';

import { formatValue } from '../../shared/format';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';

export interface PlotTable {
  readonly columns: readonly string[];
  readonly rows: ReadonlyArray<readonly unknown[]>;
}

const MOST_ROWS = 200;

export function TableDialog({
  title,
  table,
  onClose
}: {
  title: string;
  table: PlotTable;
  onClose: () => void;
}) {
  const [most, setMost] = useState(MOST_ROWS);
  const { columns, rows } = table;
  return (
    <Dialog
      title={title}
      wide
      onClose={onClose}
      footer={
        <>
          {rows.length > most && (
            <Button onClick={() => setMost(most * 5)}>
              {`Show more of ${rows.length.toLocaleString('en')} rows`}
            </Button>
          )}
          <Button onClick={onClose}>Close</Button>
        </>
      }
    >
      <div
        class="det-plot-table"
        tabIndex={0}
        role="region"
        aria-label={`Table of ${title}`}
      >
        <table class="det-grid">
          <thead>
            <tr>
              {columns.map((column, at) => (
                <th key={at} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((row, at) => (
              <tr key={at}>
                {row.map((value, column) =>
                  column === 0 ? (
                    <th key={column} scope="row">
                      {cell(value)}
                    </th>
                  ) : (
                    <td
                      key={column}
                      class={
                        typeof value === 'number' ? 'det-number' : undefined
                      }
                    >
                      {cell(value)}
                    </td>
                  )
                )}
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p>There are no rows.</p>}
      </div>
    </Dialog>
  );
}

function cell(value: unknown): string {
  return value === undefined ? '—' : formatValue(value);
}

/** A CSV file of a table; numbers with all their digits. */
export function tableCsv({ columns, rows }: PlotTable): string {
  return [columns, ...rows]
    .map(row => `${row.map(csvCell).join(',')}\r\n`)
    .join('');
}

function csvCell(value: unknown): string {
  const text =
    value === undefined || value === null
      ? ''
      : typeof value === 'string'
        ? value
        : typeof value === 'number'
          ? String(value)
          : JSON.stringify(value);
  // A spreadsheet would run what begins like a formula.
  const safe =
    typeof value !== 'number' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

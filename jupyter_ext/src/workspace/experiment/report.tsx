/** What was sent with an experiment, what was there already, and what was left behind. */

import { formatBytes } from '../../shared/format';
import type { CaptureRow, ExperimentView } from '../../shared/model';
import { useParameter } from '../app/context';
import { Select } from '../parts/field';

const STATUSES: ReadonlyArray<CaptureRow['status']> = [
  'new',
  'already there',
  'not sent'
];
const LABELS: Readonly<Record<CaptureRow['status'], string>> = {
  new: 'Sent',
  'already there': 'There already',
  'not sent': 'Left out'
};

/** Bytes that travelled, and those that did not have to. */
export function reportText(rows: readonly CaptureRow[]): string {
  return STATUSES.map(status => {
    const found = rows.filter(row => row.status === status);
    const bytes = found.reduce((sum, { size }) => sum + size, 0);
    return found.length === 0
      ? ''
      : `${LABELS[status]}: ${found.length.toLocaleString('en')} (${formatBytes(bytes)})`;
  })
    .filter(Boolean)
    .join(' · ');
}

/** What was left out stands first, then what has a note, then the large. */
export function reportRows(
  rows: readonly CaptureRow[],
  status: string
): CaptureRow[] {
  const rank = (row: CaptureRow) =>
    row.status === 'not sent' ? 0 : row.note ? 1 : 2;
  return rows
    .filter(row => status === '' || row.status === status)
    .toSorted(
      (first, second) => rank(first) - rank(second) || second.size - first.size
    );
}

export function ReportTab({ view }: { view: ExperimentView }) {
  const [status, setStatus] = useParameter('status');
  const rows = view.experiment?.report ?? [];
  const shown = reportRows(rows, status);
  return (
    <>
      <div class="det-exp-tools">
        <Select
          label="Show"
          value={status}
          choices={[
            { value: '', label: 'Everything' },
            ...STATUSES.map(value => ({ value, label: LABELS[value] }))
          ]}
          onChange={setStatus}
        />
        <span class="det-exp-muted">{reportText(rows)}</span>
      </div>
      <div class="det-exp-scroll">
        <table class="det-grid" aria-label="What was sent">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">State</th>
              <th scope="col">How</th>
              <th scope="col" class="det-number">
                Size
              </th>
              <th scope="col">Cell</th>
              <th scope="col">Note</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row, index) => (
              <tr key={index} data-status={row.status}>
                <td>{row.what}</td>
                <td class="det-exp-nowrap">{LABELS[row.status]}</td>
                <td>{row.how}</td>
                <td class="det-number det-exp-nowrap">
                  {formatBytes(row.size)}
                </td>
                <td class="det-exp-nowrap">{row.cell}</td>
                <td>{row.note}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Experiments side by side in tables: facts, metrics, hyperparameters. */

import { shortName } from '../../shared/paths';
import { trialNumber } from '../../shared/trialNumbers';
import { experimentAddress } from '../app/address';
import { useParameter } from '../app/context';
import { Checkbox, Select } from '../parts/field';
import { Link } from '../parts/link';
import { clipped } from '../search/shapes';
import { factRows, hparamRows, metricRows, type Row, type Side } from './rows';

const MOST_ROWS = 500;
/** Of more trials a list is no choice any more. */
const MOST_CHOICES = 1000;

export interface SidesProps {
  readonly sides: readonly Side[];
  readonly onTrial: (side: Side, number: number) => void;
}

export function CompareTables({ sides, onTrial }: SidesProps) {
  const [all, setAll] = useParameter('all');
  const groups: ReadonlyArray<{ title: string; rows: readonly Row[] }> = [
    { title: 'Facts', rows: factRows(sides) },
    { title: 'Metrics, best values', rows: metricRows(sides) },
    { title: 'Hyperparameters', rows: hparamRows(sides) }
  ];
  return (
    <>
      <div class="det-plot-tools">
        <Checkbox
          label="Rows that are the same in all, too"
          checked={all === 'yes'}
          onChange={checked => setAll(checked ? 'yes' : '')}
        />
      </div>
      <div
        class="det-compare-scroll"
        tabIndex={0}
        role="region"
        aria-label="Experiments side by side"
      >
        <table class="det-grid det-compare-table">
          <thead>
            <tr>
              <td />
              {sides.map((side, at) => (
                <th key={String(side.compared.id)} scope="col">
                  <SideHead side={side} at={at} onTrial={onTrial} />
                </th>
              ))}
            </tr>
          </thead>
          {groups.map(({ title, rows }) => (
            <Group
              key={title}
              title={title}
              rows={rows}
              all={all === 'yes' || sides.length < 2}
              columns={sides.length}
            />
          ))}
        </table>
      </div>
    </>
  );
}

function SideHead({
  side,
  at,
  onTrial
}: {
  side: Side;
  at: number;
  onTrial: SidesProps['onTrial'];
}) {
  const { compared, trial } = side;
  const { id, detail, trials } = compared;
  return (
    <div class="det-compare-head">
      <span class="det-compare-name">
        <span
          class="det-compare-colour"
          data-colour={(at % 8) + 1}
          aria-hidden="true"
        />
        <Link to={experimentAddress(id)} title={clipped(detail.name, 300)}>
          {`${shortName(id)} ${clipped(detail.name, 40)}`}
        </Link>
      </span>
      {trials.length > 1 && (
        <Select
          label={`Trial of ${shortName(id)}`}
          hideLabel
          value={String(trial ? trialNumber(trial) : '')}
          choices={trials.slice(0, MOST_CHOICES).map(each => ({
            value: String(trialNumber(each)),
            label: `Trial ${trialNumber(each)}`
          }))}
          onChange={value => onTrial(side, Number(value))}
        />
      )}
    </div>
  );
}

function Group({
  title,
  rows,
  all,
  columns
}: {
  title: string;
  rows: readonly Row[];
  all: boolean;
  columns: number;
}) {
  const shown = rows.filter(({ differs }) => all || differs);
  const same = rows.length - shown.length;
  return (
    <tbody>
      <tr class="det-compare-group">
        <th scope="rowgroup" colSpan={columns + 1}>
          {title}
          {same > 0 && (
            <span class="det-compare-same">
              {` ${same.toLocaleString('en')} ${same === 1 ? 'row is' : 'rows are'} the same`}
            </span>
          )}
        </th>
      </tr>
      {shown.slice(0, MOST_ROWS).map(row => (
        <tr key={row.name} data-differs={row.differs}>
          <th scope="row" title={clipped(row.name, 300)}>
            {clipped(row.name, 60)}
          </th>
          {row.texts.map((text, at) => (
            <td key={at} class={row.numeric ? 'det-number' : undefined}>
              {row.best.has(at) ? (
                <strong>
                  {text}
                  <span class="det-compare-best" title="The best of the row">
                    <span aria-hidden="true">★</span>
                    <span class="det-hidden">, the best</span>
                  </span>
                </strong>
              ) : (
                (text ?? <span class="det-compare-none">—</span>)
              )}
            </td>
          ))}
        </tr>
      ))}
      {rows.length === 0 && (
        <tr>
          <td colSpan={columns + 1}>There are none.</td>
        </tr>
      )}
    </tbody>
  );
}

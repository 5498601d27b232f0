/** What stands in a cell. */

import { formatPercent, formatValue, shortened } from '../../shared/format';
import { shortName } from '../../shared/paths';
import { experimentStateText, TEXTS } from '../../shared/texts';
import { experimentAddress } from '../app/address';
import { Link } from '../parts/link';
import { StateBadge } from '../parts/state';
import type { Column } from './columns';
import type { Row } from './rows';

/** Letters of a name that are drawn; no cell is as wide. */
const MOST_LETTERS = 300;

export function CellContent({ column, row }: { column: Column; row: Row }) {
  const { experiment } = row;
  const text = column.text(row);
  switch (column.look) {
    case 'name':
      return (
        <>
          <Link
            class="det-list-link"
            to={experimentAddress(experiment.id)}
            tabIndex={-1}
            title={text.slice(0, 1000)}
          >
            {text.slice(0, MOST_LETTERS)}
          </Link>
          <span class="det-list-id">{shortName(experiment.id)}</span>
          {experiment.in_kernel && (
            <span class="det-list-id" title={TEXTS.noPause}>
              {TEXTS.inKernel}
            </span>
          )}
          {experiment.archived && <span class="det-list-id">archived</span>}
        </>
      );
    case 'state':
      return <StateBadge state={experimentStateText(experiment)} />;
    case 'progress':
      return <Progress fraction={experiment.progress} />;
    case 'labels':
      return <Labels labels={experiment.labels ?? []} />;
    case 'text':
      return (
        <span class="det-list-text" title={text.slice(0, 1000)}>
          {text.slice(0, MOST_LETTERS)}
        </span>
      );
  }
}

function Progress({ fraction }: { fraction: number }) {
  const percent = formatPercent(fraction);
  return (
    <span class="det-list-progress">
      <span class="det-list-track" aria-hidden="true">
        <span
          class="det-list-done"
          style={{ width: `${Math.min(Math.max(fraction, 0), 1) * 100}%` }}
        />
      </span>
      {percent}
    </span>
  );
}

function Labels({ labels }: { labels: readonly string[] }) {
  return (
    <span class="det-list-labels" title={labels.join(', ').slice(0, 1000)}>
      {labels.slice(0, 20).map(label => (
        <span key={label} class="det-list-label">
          {shortened(label)}
        </span>
      ))}
    </span>
  );
}

/** A row as a card, where there is no room for columns. */
export function Card({ row }: { row: Row }) {
  const { experiment } = row;
  const { best_validation: best, metric, labels = [] } = experiment;
  return (
    <div class="det-list-card">
      <div class="det-list-card-line">
        <CellContent column={NAME} row={row} />
      </div>
      <div class="det-list-card-line">
        <StateBadge state={experimentStateText(experiment)} />
        <span>{formatPercent(experiment.progress)}</span>
        {best !== null && (
          <span class="det-list-text">
            {shortened(metric)} {formatValue(best)}
          </span>
        )}
        {labels.length > 0 && <Labels labels={labels} />}
      </div>
    </div>
  );
}

const NAME: Column = {
  key: 'name',
  label: 'Name',
  width: 0,
  number: false,
  look: 'name',
  order: null,
  descending: false,
  text: ({ experiment }) => experiment.name || `Experiment ${experiment.id}`
};

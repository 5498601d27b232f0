/** How many experiments match, and what else is to be known of the table. */

import { counted } from './columns';
import { several } from './bulk';
import type { Book } from './rowBook';
import type { Groups } from './rows';

export interface SummaryProps {
  view: Book;
  /** Where the table is grouped. */
  groups: Groups | null;
  busy: string;
}

export function Summary({ view, groups, busy }: SummaryProps) {
  const { total, ids, answered, notice, problem } = view;
  const parts = [
    busy,
    problem !== null
      ? ids.length > 0
        ? `${several(total)} of the search before`
        : ''
      : answered
        ? several(total)
        : 'Loading…',
    groups === null || !answered
      ? ''
      : groups.groups.length === 1
        ? '1 group'
        : `${counted(groups.groups.length)} groups`,
    groups && groups.grouped < groups.total
      ? `Only the newest or best ${counted(groups.grouped)} are grouped.`
      : '',
    groups && (groups.other_groups ?? 0) > 0
      ? `${counted(groups.other_groups ?? 0)} further groups are left out.`
      : '',
    answered && total > ids.length
      ? `The first ${counted(ids.length)} are listed: search for others.`
      : '',
    notice
  ];
  return (
    <p class="det-list-summary" role="status">
      {parts.filter(Boolean).join(' · ')}
    </p>
  );
}

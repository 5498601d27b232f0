/** What goes with a deletion, and what cannot be deleted. */

import { type Failure, several } from './bulk';
import { FailureList } from './failures';

export interface DeletionQuestionProps {
  count: number;
  checkpoints: number;
  size: string;
  /** Of a single one. */
  name: string;
  blocked: readonly Failure[];
}

export function DeletionQuestion({
  count,
  checkpoints,
  size,
  name,
  blocked
}: DeletionQuestionProps) {
  return (
    <>
      <p class="det-list-break">
        {name === '' ? several(count) : name.slice(0, 300)} with{' '}
        {checkpoints === 1
          ? '1 checkpoint'
          : `${checkpoints.toLocaleString('en-US')} checkpoints`}
        , metrics, output and files. This frees {size} and cannot be undone.
      </p>
      {blocked.length > 0 && (
        <>
          <p>{several(blocked.length)} cannot be deleted and will stay:</p>
          <FailureList failed={blocked} />
        </>
      )}
    </>
  );
}

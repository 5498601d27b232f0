/** What was refused, experiment by experiment. */

import { shortName } from '../../shared/paths';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import type { Failure } from './bulk';

const MOST = 200;

export function FailureList({ failed }: { failed: readonly Failure[] }) {
  return (
    <ul class="det-list-failures" tabIndex={0} aria-label="What was refused">
      {failed.slice(0, MOST).map(({ id, message }) => (
        <li key={id}>
          <strong>{shortName(id)}</strong> {message}
        </li>
      ))}
      {failed.length > MOST && <li>and {failed.length - MOST} more</li>}
    </ul>
  );
}

export function Failures({
  title,
  failed,
  onClose
}: {
  title: string;
  failed: readonly Failure[];
  onClose: () => void;
}) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <FailureList failed={failed} />
    </Dialog>
  );
}

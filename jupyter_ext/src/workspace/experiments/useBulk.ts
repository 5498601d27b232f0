/** What is done with several experiments, as the page does it: asked first, told while it goes on and at the end. */

import type { RefObject } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import { formatBytes } from '../../shared/format';
import type { ExperimentId } from '../../shared/model';
import { shortName } from '../../shared/paths';
import { useWorkspace } from '../app/context';
import { confirm } from '../parts/dialog';
import {
  BulkActions,
  type Deletion,
  type Failure,
  forEach,
  freed,
  type Outcome,
  several
} from './bulk';
import { DeletionQuestion } from './deletionQuestion';

export interface Bulk {
  /** What goes on now, such as `Stopping: 3 of 20`; empty for nothing. */
  readonly busy: string;
  /** What was refused, until the user has read it. */
  readonly failures: { title: string; failed: readonly Failure[] } | null;
  readonly actions: BulkActions;
  readonly closeFailures: () => void;
  /** Do something with each, then say how many were done and which were refused. */
  readonly run: (
    words: Words,
    ids: readonly ExperimentId[],
    action: (id: ExperimentId) => Promise<unknown>
  ) => Promise<void>;
  /** Ask with what it frees, then delete those that can be. */
  readonly remove: (ids: readonly ExperimentId[]) => Promise<void>;
}

/** `Stopping`, `Stopped`, `could not be stopped`. */
export interface Words {
  readonly doing: string;
  readonly done: string;
  readonly refused: string;
}

export const WORDS = {
  stop: words('Stopping', 'Stopped', 'stopped'),
  pause: words('Pausing', 'Paused', 'paused'),
  resume: words('Resuming', 'Resumed', 'resumed'),
  archive: words('Archiving', 'Archived', 'archived'),
  unarchive: words('Unarchiving', 'Unarchived', 'unarchived'),
  label: words('Labelling', 'Labelled', 'labelled'),
  move: words('Moving', 'Moved', 'moved'),
  delete: words('Deleting', 'Deleted', 'deleted')
} as const;

export function useBulk(
  root: RefObject<HTMLElement>,
  onDone: (deleted: readonly ExperimentId[]) => void
): Bulk {
  const { host, toasts } = useWorkspace();
  const actions = useMemo(() => new BulkActions(host.transport.api), [host]);
  const [busy, setBusy] = useState('');
  const [failures, setFailures] = useState<Bulk['failures']>(null);

  const each = async <T>(
    doing: string,
    ids: readonly ExperimentId[],
    action: (id: ExperimentId) => Promise<T>
  ): Promise<Outcome<T>> => {
    const tell = (finished: number) =>
      setBusy(`${doing}: ${finished} of ${ids.length}`);
    tell(0);
    try {
      return await forEach(ids, action, tell);
    } finally {
      setBusy('');
    }
  };
  const conclude = (
    { done, refused }: Words,
    { done: changed, failed }: Outcome
  ) => {
    if (changed.length > 0) {
      toasts.say(`${done} ${several(changed.length)}.`);
    }
    if (failed.length > 0) {
      const title = `${several(failed.length)} could not be ${refused}.`;
      setFailures({ title, failed });
    }
  };
  return {
    busy,
    failures,
    actions,
    closeFailures: () => setFailures(null),
    run: async (how, ids, action) => {
      conclude(how, await each(how.doing, ids, action));
      onDone([]);
    },
    remove: async ids => {
      const looked = await each('Looking what it frees', ids, id =>
        actions.deletion(id)
      );
      const [free, blocked] = sorted(looked);
      const bytes = free.reduce((sum, { answer }) => sum + freed(answer), 0);
      if (free.length === 0) {
        const title = `${several(blocked.length)} cannot be deleted.`;
        setFailures({ title, failed: blocked });
        return;
      }
      const agreed =
        root.current !== null &&
        (await confirm(root.current, {
          title: `Delete ${several(free.length)}?`,
          body: DeletionQuestion({
            count: free.length,
            checkpoints: free.reduce(
              (n, each) => n + each.answer.checkpoints,
              0
            ),
            size: formatBytes(bytes),
            name:
              free.length === 1
                ? `${free[0]!.answer.name} (${shortName(free[0]!.id)})`
                : '',
            blocked
          }),
          action: 'Delete',
          danger: true
        }));
      if (agreed) {
        const outcome = await each(
          WORDS.delete.doing,
          free.map(({ id }) => id),
          id => actions.delete(id)
        );
        conclude(WORDS.delete, outcome);
        onDone(outcome.done.map(({ id }) => id));
      }
    }
  };
}

/** Those that can be deleted, and why others cannot. */
function sorted({
  done,
  failed
}: Outcome<Deletion>): [Outcome<Deletion>['done'], Failure[]] {
  const free = done.filter(
    ({ answer }) => (answer.obstacles ?? []).length === 0
  );
  const blocked = done
    .filter(({ answer }) => (answer.obstacles ?? []).length > 0)
    .map(({ id, answer }) => ({
      id,
      message: (answer.obstacles ?? []).join(' ')
    }));
  return [free, [...failed, ...blocked]];
}

function words(doing: string, done: string, refused: string): Words {
  return { doing, done, refused };
}

/** What trials use of their machines. */

import type { ExperimentFeed } from '../../shared/feed';
import type { ExperimentView } from '../../shared/model';
import { SystemSection } from '../../shared/systemSection';
import { useWorkspace } from '../app/context';
import { Empty } from '../parts/state';
import { Embedded } from './embedded';
import { TrialSelect } from './trialSelect';

export function SystemTab({
  view,
  feed
}: {
  view: ExperimentView;
  feed: ExperimentFeed;
}) {
  const { toasts } = useWorkspace();
  const chosen = view.log?.chosen ? String(view.log.trialId) : '';
  return (
    <>
      <TrialSelect
        view={view}
        label="Trial"
        value={chosen}
        automatic="The trial of most interest"
        onChange={value =>
          void feed
            .chooseLog(value === '' ? null : Number(value))
            .catch((error: unknown) => toasts.error(error))
        }
      />
      <Embedded make={() => new SystemSection(true)} view={view} />
      {(view.system?.samples.length ?? 0) === 0 && (
        <Empty title="Nothing is measured yet.">
          Samples come a few seconds after a trial has started.
        </Empty>
      )}
    </>
  );
}

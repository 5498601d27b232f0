/** What can be done with the experiments that are selected. */

import { useState } from 'preact/hooks';

import type { ExperimentId } from '../../shared/model';
import { addressText } from '../app/address';
import { useWorkspace } from '../app/context';
import { Button } from '../parts/button';
import { Menu } from '../parts/menu';
import { MOST_COMPARED, several } from './bulk';
import { LabelDialog, ProjectDialog } from './bulkDialogs';
import type { ExperimentNames, Row } from './rows';
import { type Bulk, WORDS } from './useBulk';

export interface BulkBarProps {
  ids: readonly ExperimentId[];
  rows: ReadonlyMap<ExperimentId, Row>;
  names: ExperimentNames | null;
  bulk: Bulk;
  onClear: () => void;
}

export function BulkBar({ ids, rows, names, bulk, onClear }: BulkBarProps) {
  const { navigation } = useWorkspace().host;
  const [dialog, setDialog] = useState<'labels' | 'project' | null>(null);
  const { actions } = bulk;
  const tooMany = ids.length > MOST_COMPARED;
  const busy = bulk.busy !== '';
  const archive = (archived: boolean) =>
    bulk.run(archived ? WORDS.archive : WORDS.unarchive, ids, id =>
      actions.change(id, { archived })
    );
  return (
    <div class="det-list-bulk" role="toolbar" aria-label="Selected experiments">
      <strong role="status">
        {busy ? bulk.busy : `${several(ids.length)} selected`}
      </strong>
      <Button
        look="primary"
        disabled={ids.length < 2 || tooMany}
        title={
          tooMany
            ? `At most ${MOST_COMPARED} can be compared.`
            : ids.length < 2
              ? 'Select two or more to compare them.'
              : undefined
        }
        onClick={() => navigation.open(addressText({ page: 'compare', ids }))}
      >
        Compare
      </Button>
      <Button
        icon="stop"
        disabled={busy}
        onClick={() =>
          void bulk.run(WORDS.stop, ids, id => actions.act(id, 'stop'))
        }
      >
        Stop
      </Button>
      <Button icon="tag" disabled={busy} onClick={() => setDialog('labels')}>
        Labels…
      </Button>
      <Button icon="archive" disabled={busy} onClick={() => void archive(true)}>
        Archive
      </Button>
      <Menu
        label="More"
        disabled={busy}
        items={[
          { label: 'Move to a project…', onChoose: () => setDialog('project') },
          { label: 'Unarchive', onChoose: () => void archive(false) },
          ...(['pause', 'resume'] as const).map(action => ({
            label: action === 'pause' ? 'Pause' : 'Resume',
            icon: action === 'pause' ? ('pause' as const) : ('play' as const),
            onChoose: () =>
              void bulk.run(WORDS[action], ids, id => actions.act(id, action))
          }))
        ]}
      />
      <Button
        look="danger"
        icon="trash"
        disabled={busy}
        onClick={() => void bulk.remove(ids)}
      >
        Delete…
      </Button>
      <Button look="quiet" icon="close" onClick={onClear}>
        Clear selection
      </Button>
      {tooMany && (
        <span class="det-list-hint">
          At most {MOST_COMPARED} can be compared.
        </span>
      )}
      {dialog === 'labels' && (
        <LabelDialog
          count={ids.length}
          known={names?.labels.map(({ name }) => name) ?? []}
          present={labelsOf(ids, rows)}
          onClose={() => setDialog(null)}
          onLabels={(added, removed) =>
            void bulk.run(WORDS.label, ids, id =>
              actions.change(id, { add_labels: added, remove_labels: removed })
            )
          }
        />
      )}
      {dialog === 'project' && (
        <ProjectDialog
          count={ids.length}
          known={names?.projects.map(({ name }) => name) ?? []}
          onClose={() => setDialog(null)}
          onProject={project =>
            void bulk.run(WORDS.move, ids, id =>
              actions.change(id, { project })
            )
          }
        />
      )}
    </div>
  );
}

/** The labels of those whose rows are there. */
function labelsOf(
  ids: readonly ExperimentId[],
  rows: ReadonlyMap<ExperimentId, Row>
): string[] {
  const labels = ids.flatMap(id => rows.get(id)?.experiment.labels ?? []);
  return [...new Set(labels)].sort();
}

/** The trials of an experiment: a table to sort, with the columns that are wanted, and the details of one. */

import { useMemo } from 'preact/hooks';

import type { ExperimentView } from '../../shared/model';
import { trialSummaries } from '../../shared/requests';
import { useApi, useParameter } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Checkbox } from '../parts/field';
import { Popover } from '../parts/menu';
import { Empty } from '../parts/state';
import { standardColumns, trialColumns } from './trialColumns';
import { TrialDetail } from './trialDetail';
import { sorted, VirtualTable } from './virtualTable';

export function TrialsTab({ view }: { view: ExperimentView }) {
  const api = useApi();
  const [chosen, setChosen] = useParameter('columns');
  const [order, setOrder] = useParameter('sort');
  const [opened, setOpened] = useParameter('trial', '', { push: true });
  const summaries = useLoad(
    `summaries of ${view.id}`,
    signal => trialSummaries(api, [view.id], signal),
    [view.id]
  );
  const { trials } = view;
  const columns = useMemo(
    () =>
      trialColumns(view, summaries.data ?? [], trial =>
        setOpened(String(trial.id))
      ),
    [trials, view.experiment, summaries.data]
  );
  const names =
    chosen === '' ? standardColumns(columns, trials) : chosen.split('~');
  const shown = columns.filter(({ name }) => names.includes(name));
  const rows = useMemo(
    () => sorted(trials, columns, order),
    [trials, columns, order]
  );
  const trial = trials.find(({ id }) => String(id) === opened);
  const toggle = (name: string, wanted: boolean) => {
    const next = columns
      .map(column => column.name)
      .filter(each => (each === name ? wanted : names.includes(each)));
    setChosen(next.join('~'));
  };
  if (trials.length === 0) {
    return (
      <Empty title="There are no trials yet.">
        The first one begins when there is a free slot.
      </Empty>
    );
  }
  return (
    <>
      <div class="det-exp-tools">
        <Popover label="Columns" icon="columns">
          {() => (
            <div class="det-exp-choices">
              {columns.map(({ name, title }) => (
                <Checkbox
                  key={name}
                  label={title}
                  checked={names.includes(name)}
                  onChange={wanted => toggle(name, wanted)}
                />
              ))}
            </div>
          )}
        </Popover>
        <span class="det-exp-muted">
          {trials.length.toLocaleString('en')}{' '}
          {trials.length === 1 ? 'trial' : 'trials'}
        </span>
      </div>
      {trial && (
        <TrialDetail
          key={trial.id}
          trial={trial}
          view={view}
          summary={summaries.data?.find(each => each.trial_id === trial.id)}
          onClose={() => setOpened('')}
        />
      )}
      <VirtualTable
        label="Trials"
        rows={rows}
        columns={shown}
        rowKey={({ id }) => String(id)}
        order={order}
        onOrder={setOrder}
        selected={opened}
        onSelect={key => setOpened(key === opened ? '' : key)}
      />
    </>
  );
}

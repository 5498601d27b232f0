/** The groups of the experiments that match, asked for where the table is grouped. */

import { useRef } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import type { ExperimentId } from '../../shared/model';
import { useApi } from '../app/context';
import { type Loaded, useLoad } from '../data/useLoad';
import { listQuery } from './filters';
import type { Book } from './rowBook';
import type { ExperimentNames, Groups, Row } from './rows';
import type { TableState } from './tableState';

export interface LoadedGroups extends Loaded<Groups> {
  /** What is averaged. */
  readonly measure: string;
}

export function useGroups(
  { filters, group, measure }: TableState,
  names: ExperimentNames | null,
  { rows, problem }: Book
): LoadedGroups {
  const api = useApi();
  const chosen = measure || usual(names, rows);
  const query = {
    ...listQuery(filters),
    by: group,
    measure: directed(chosen, rows)
  };
  const key = group === '' || chosen === '' ? null : JSON.stringify(query);
  const loaded = useLoad(
    key,
    signal =>
      dataOf(
        api.GET('/api/v1/experiment-groups', { params: { query }, signal })
      ),
    'all'
  );
  // Other filters leave the groups in sight until the answer is there, and a query that cannot be read does, too.
  const kept = useRef<{ of: string; data: Groups } | null>(null);
  const of = JSON.stringify([group, chosen]);
  if (key !== null && loaded.data !== null) {
    kept.current = { of, data: loaded.data };
  }
  const stays =
    kept.current?.of === of && (loaded.error === null || problem !== null);
  const data = loaded.data ?? (stays ? kept.current!.data : null);
  return { ...loaded, data, measure: chosen };
}

/** The metric that the newest experiments are compared by. */
function usual(
  names: ExperimentNames | null,
  rows: ReadonlyMap<ExperimentId, Row>
): string {
  const counts = new Map<string, number>();
  rows.forEach(({ experiment: { metric, best_validation: best } }) => {
    if (best !== null && metric !== '') {
      counts.set(metric, (counts.get(metric) ?? 0) + 1);
    }
  });
  const [most] = [...counts].sort((one, other) => other[1] - one[1]);
  const name = most?.[0] ?? names?.metrics[0]?.name;
  return name === undefined
    ? names === null
      ? ''
      : 'duration'
    : `metric:${name}`;
}

/** With the direction that the experiments say, where they are compared by it. */
function directed(
  measure: string,
  rows: ReadonlyMap<ExperimentId, Row>
): string {
  if (measure === 'duration') {
    return 'duration asc';
  }
  for (const { experiment } of rows.values()) {
    if (`metric:${experiment.metric}` === measure) {
      return `${measure} ${experiment.smaller_is_better ? 'asc' : 'desc'}`;
    }
  }
  return measure;
}

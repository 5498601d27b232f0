import type { ExperimentFeed } from '../../shared/feed';
import type { ExperimentView } from '../../shared/model';
import { Empty } from '../parts/state';

export interface TabProps {
  readonly view: ExperimentView;
  readonly feed: ExperimentFeed;
}

export function ChartsTab({ view }: TabProps) {
  return <Empty title={`There are no charts of ${view.id} yet.`} />;
}

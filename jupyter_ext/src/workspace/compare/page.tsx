import type { ExperimentId } from '../../shared/model';
import { Empty } from '../parts/state';

export function ComparePage({ ids }: { ids: readonly ExperimentId[] }) {
  return <Empty title={`Nothing is here yet of ${ids.join(', ')}.`} />;
}

import type { TabProps } from '../charts/chartsTab';
import { Empty } from '../parts/state';

export function SearchTab({ view }: TabProps) {
  return <Empty title={`There is no search in ${view.id} yet.`} />;
}

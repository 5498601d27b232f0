import { Empty } from '../parts/state';

export function ClusterPage() {
  return <Empty title="Nothing is here yet." />;
}

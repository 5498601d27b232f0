import { Empty } from '../parts/state';

export function ExperimentsPage() {
  return <Empty title="Nothing is here yet." />;
}

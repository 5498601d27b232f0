import { Empty } from '../parts/state';

export function ModelsPage() {
  return <Empty title="Nothing is here yet." />;
}

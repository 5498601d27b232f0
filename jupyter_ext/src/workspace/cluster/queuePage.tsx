import { Empty } from '../parts/state';

export function QueuePage() {
  return <Empty title="Nothing is here yet." />;
}

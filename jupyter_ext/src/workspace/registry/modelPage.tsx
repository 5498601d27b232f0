import { Empty } from '../parts/state';

export function ModelPage({ name }: { name: string }) {
  return <Empty title={`Nothing is here yet of ${name}.`} />;
}

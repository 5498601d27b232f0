/** Which page stands at a place. */

import { ClusterPage } from '../cluster/clusterPage';
import { QueuePage } from '../cluster/queuePage';
import { ComparePage } from '../compare/page';
import { ExperimentPage } from '../experiment/page';
import { ExperimentsPage } from '../experiments/page';
import { Link } from '../parts/link';
import { Empty } from '../parts/state';
import { ModelPage } from '../registry/modelPage';
import { ModelsPage } from '../registry/modelsPage';
import { HOME, type Place } from './address';

export function PageOf({ place }: { place: Place }) {
  switch (place.page) {
    case 'experiments':
      return <ExperimentsPage />;
    case 'experiment':
      return <ExperimentPage key={place.id} id={place.id} tab={place.tab} />;
    case 'compare':
      return <ComparePage ids={place.ids} />;
    case 'models':
      return <ModelsPage />;
    case 'model':
      return <ModelPage key={place.name} name={place.name} />;
    case 'queue':
      return <QueuePage />;
    case 'cluster':
      return <ClusterPage />;
    case 'unknown':
      return (
        <Empty title="There is no such page.">
          <Link to={HOME}>All experiments</Link>
        </Empty>
      );
  }
}

/** Nothing is in the table: how to begin, or how to find more. */

import { Button } from '../parts/button';
import { Empty } from '../parts/state';

const EXAMPLE = `import det_native as det
context = det.experimental.keras.init()
model = context.wrap_model(model)  # compile and fit it as before`;

/** No experiment was ever made. */
export function NoExperiments({ kind }: { kind: 'lab' | 'page' }) {
  return (
    <Empty title="No experiments yet.">
      <p>
        {kind === 'lab'
          ? 'Open a notebook that trains a model and choose Submit above it, or write:'
          : 'Write into a notebook or a script that trains a model:'}
      </p>
      <pre class="det-list-code">{EXAMPLE}</pre>
      <p>The experiment appears here as soon as it is submitted.</p>
    </Empty>
  );
}

/** There are experiments, but none like that. */
export function NoneMatch({ onClear }: { onClear: () => void }) {
  return (
    <Empty title="No experiment matches.">
      <p>Archived ones are found only with Archived ticked.</p>
      <Button onClick={onClear}>Clear search and filters</Button>
    </Empty>
  );
}

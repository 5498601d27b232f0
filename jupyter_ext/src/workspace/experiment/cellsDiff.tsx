/** The cells that ran beside those of the notebook as it is now. */

import { useState } from 'preact/hooks';

import { useWorkspace } from '../app/context';
import { Button } from '../parts/button';
import { DiffView } from '../parts/diffView';
import { Empty } from '../parts/state';
import { isMagicOnly, joinedCells } from './cellTexts';

export function CellsDiff({ ran }: { ran: readonly string[] }) {
  const { host } = useWorkspace();
  const [now, setNow] = useState(() => host.notebookCells?.() ?? null);
  const again = () => setNow(host.notebookCells?.() ?? null);
  if (now === null) {
    return (
      <Empty title="No notebook is open.">
        <p>Open the notebook that the experiment came from, then compare.</p>
        <Button icon="refresh" onClick={again}>
          Compare
        </Button>
      </Empty>
    );
  }
  const cells = now.filter(cell => !isMagicOnly(cell));
  return (
    <>
      <p class="det-exp-muted">
        Only the cells up to the training call were sent; those behind it stand
        here as added.{' '}
        <Button icon="refresh" onClick={again}>
          Read the notebook again
        </Button>
      </p>
      <DiffView
        before={joinedCells(ran)}
        after={joinedCells(cells)}
        beforeLabel="The cells that ran"
        afterLabel="The notebook now"
        language="python"
      />
    </>
  );
}

/** A chart as large as the window. */

import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { shortTitle } from './chartMenu';
import { CurveChart } from './curveChart';
import type { CurveChartProps } from './series';

const SHARE = 0.55;
const LEAST = 260;

export function EnlargedChart({
  chart,
  onClose
}: {
  chart: CurveChartProps;
  onClose: () => void;
}) {
  const height = Math.max(LEAST, Math.round(window.innerHeight * SHARE));
  return (
    <div class="det-board-enlarged">
      <Dialog
        title={shortTitle(chart.title)}
        wide
        onClose={onClose}
        footer={<Button onClick={onClose}>Close</Button>}
      >
        <CurveChart {...chart} height={height} />
      </Dialog>
    </div>
  );
}

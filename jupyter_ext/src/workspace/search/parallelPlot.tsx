/** Parallel coordinates: drag on an axis to filter, drag its name to move it; both by keyboard, too. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { useWidth } from '../parts/useWidth';
import { type Hover, useHovered } from './hover';
import { AxisControls, AxisNames } from './parallelAxis';
import {
  leastWidth,
  lineAt,
  parallelLayout,
  parallelScene,
  pointsOf,
  scalesOf
} from './parallelScene';
import { PlotCanvas, PlotMenu, Tooltip } from './plotCard';
import type { PlotTable } from './plotTable';
import type { Colouring } from './scenes';
import type { AnalysedTrial, Brush, Brushes, Dimension } from './trials';
import { usePlotColours } from './usePlotColours';

const HEIGHT = 340;

export interface ParallelPlotProps {
  readonly trials: readonly AnalysedTrial[];
  readonly dimensions: readonly Dimension[];
  readonly brushes: Brushes;
  readonly onBrushes: (brushes: Brushes) => void;
  /** The ids of the dimensions, in their new order. */
  readonly onOrder: (ids: readonly string[]) => void;
  readonly colouring: Colouring;
  readonly hover: Hover;
  readonly tell: (key: string) => readonly string[];
  readonly table: () => PlotTable;
}

export function ParallelPlot(props: ParallelPlotProps) {
  const { trials, dimensions, colouring, hover, table } = props;
  const place = useRef<HTMLDivElement>(null);
  const seen = useWidth(place, 800);
  const colours = usePlotColours(place);
  const width = Math.max(seen, leastWidth(dimensions.length));
  // While an end is dragged only this plot follows; the rest of the page when it is let go.
  const [dragged, setDragged] = useState<Brushes | null>(null);
  useEffect(() => setDragged(null), [props.brushes]);
  const brushes = dragged ?? props.brushes;
  const scales = useMemo(
    () => scalesOf(trials, dimensions),
    [trials, dimensions]
  );
  const layout = useMemo(
    () =>
      parallelLayout({
        trials,
        dimensions,
        scales,
        colouring,
        size: { width, height: HEIGHT },
        colours
      }),
    [trials, dimensions, scales, colouring, width, colours]
  );
  const scene = useMemo(
    () => parallelScene(layout, brushes),
    [layout, brushes]
  );
  const filtered = scene.lines.length < trials.length;
  const size = { width, height: HEIGHT };
  const change = (id: string, brush: Brush | null, done: boolean) => {
    const others = Object.entries(brushes).filter(([name]) => name !== id);
    const next: Brushes = Object.fromEntries(
      brush === null ? others : [...others, [id, brush]]
    );
    if (done) {
      props.onBrushes(next);
    } else {
      setDragged(next);
    }
  };
  const title = 'Parallel coordinates';
  return (
    <figure class="det-plot det-plot-wide" aria-label={title}>
      <figcaption class="det-plot-head">
        <span class="det-plot-title">{title}</span>
        <span class="det-plot-hint">
          {`${scene.lines.length.toLocaleString('en')} of ${trials.length.toLocaleString('en')} trials`}
        </span>
        <PlotMenu
          title={title}
          table={table}
          picture={() => ({
            shapes: [
              ...(filtered ? layout.backdrop : []),
              ...scene.shapes,
              ...layout.names
            ],
            size,
            colours
          })}
        />
      </figcaption>
      <div ref={place} class="det-parallel-scroll">
        <div class="det-parallel" style={{ width: `${width}px` }}>
          <AxisNames scene={scene} width={width} onOrder={props.onOrder} />
          <div class="det-plot-place" style={{ height: `${HEIGHT}px` }}>
            {filtered && <PlotCanvas shapes={layout.backdrop} size={size} />}
            <PlotCanvas
              shapes={scene.shapes}
              size={size}
              label={`A line for each of ${scene.lines.length} trials over ${dimensions.map(({ name }) => name).join(', ')}`}
            />
            <Lines scene={scene} size={size} hover={hover} tell={props.tell} />
            {scene.axes.map(axis => (
              <AxisControls
                key={axis.dimension.id}
                axis={axis}
                scene={scene}
                brush={brushes[axis.dimension.id] ?? null}
                onChange={(brush, done) =>
                  change(axis.dimension.id, brush, done)
                }
              />
            ))}
          </div>
        </div>
      </div>
    </figure>
  );
}

function Lines({
  scene,
  size,
  hover,
  tell
}: {
  scene: ReturnType<typeof parallelScene>;
  size: { width: number; height: number };
  hover: Hover;
  tell: ParallelPlotProps['tell'];
}) {
  const key = useHovered(hover);
  const [pointer, setPointer] = useState<{ x: number; y: number } | null>(null);
  const line =
    key === null ? undefined : scene.lines.find(each => each.key === key);
  const points = line ? pointsOf(scene, line) : [];
  return (
    <div
      class="det-plot-hits"
      onPointerMove={event => {
        const box = event.currentTarget.getBoundingClientRect();
        const at = { x: event.clientX - box.left, y: event.clientY - box.top };
        setPointer(at);
        hover.set(lineAt(scene, at.x, at.y)?.key ?? null);
      }}
      onPointerLeave={() => {
        setPointer(null);
        hover.set(null);
      }}
    >
      {line && (
        <svg
          class="det-plot-overlay"
          width={size.width}
          height={size.height}
          aria-hidden="true"
        >
          <polyline points={points.join(' ')} />
        </svg>
      )}
      {line && pointer && (
        <Tooltip at={pointer} size={size} lines={tell(line.key)} />
      )}
    </div>
  );
}

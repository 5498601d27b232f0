/** Plots that a search and a comparison share: parallel coordinates and a scatter plot. */

import { useCallback } from 'preact/hooks';

import { useParameter } from '../app/context';
import { Button } from '../parts/button';
import { Checkbox, Select } from '../parts/field';
import { Popover } from '../parts/menu';
import { ParallelPlot } from './parallelPlot';
import { PlotCard } from './plotCard';
import { scatterScene } from './scenes';
import { clipped } from './shapes';
import { type Dimension, NUMBER } from './trials';
import { type Analysis, choicesOf } from './useAnalysis';

/** How many trials the filters let pass, and what takes them away. */
export function FilterState({ analysis }: { analysis: Analysis }) {
  const { trials, filtered, brushes, setBrushes, byId } = analysis;
  const names = Object.keys(brushes).map(id =>
    clipped(byId.get(id)?.name ?? id, 40)
  );
  return names.length === 0 ? null : (
    <p class="det-plot-filter" role="status">
      <span>
        {`${filtered.length.toLocaleString('en')} of ${trials.length.toLocaleString('en')} trials, filtered by ${names.join(', ')}`}
      </span>
      <Button icon="reset" onClick={() => setBrushes({})}>
        Show all trials
      </Button>
    </p>
  );
}

export function ParallelSection({ analysis }: { analysis: Analysis }) {
  const { axes, dimensions } = analysis;
  const all = [...dimensions.hyperparameters, ...dimensions.metrics];
  if (axes.length === 0) {
    return (
      <p class="det-plot-note">
        No hyperparameter differs between these trials, and no metric has a
        value: there is nothing to draw.
      </p>
    );
  }
  const shown = new Set(axes.map(({ id }) => id));
  return (
    <div class="det-plot-wide">
      <div class="det-plot-tools">
        <Popover label={`Axes (${axes.length} of ${all.length})`}>
          {() => (
            <div class="det-axis-choice">
              {all.map(({ id, name }) => (
                <Checkbox
                  key={id}
                  label={clipped(name, 60)}
                  checked={shown.has(id)}
                  onChange={checked => {
                    const ids = axes.map(axis => axis.id);
                    analysis.setAxes(
                      checked ? [...ids, id] : ids.filter(each => each !== id)
                    );
                  }}
                />
              ))}
            </div>
          )}
        </Popover>
        <span class="det-plot-hint">
          Drag along an axis to filter, drag a name to move an axis.
        </span>
      </div>
      <ParallelPlot
        trials={analysis.trials}
        dimensions={axes}
        brushes={analysis.brushes}
        onBrushes={analysis.setBrushes}
        onOrder={analysis.setAxes}
        colouring={analysis.colouring}
        hover={analysis.hover}
        tell={analysis.tell}
        table={() => analysis.table(axes)}
      />
    </div>
  );
}

export function ScatterSection({ analysis }: { analysis: Analysis }) {
  const { dimensions, byId, metric, filtered, colouring, hover, tell } =
    analysis;
  const all = [NUMBER, ...dimensions.hyperparameters, ...dimensions.metrics];
  const [xId, setX] = useParameter('sx');
  const [yId, setY] = useParameter('sy');
  const x = byId.get(xId) ?? dimensions.hyperparameters[0] ?? NUMBER;
  const y = byId.get(yId) ?? metric;
  const draw = useCallback(
    (
      size: { width: number; height: number },
      colours: Parameters<typeof scatterScene>[0]['colours']
    ) =>
      scatterScene({
        trials: filtered,
        x,
        y: y ?? NUMBER,
        colouring,
        size,
        colours
      }),
    [filtered, x, y, colouring]
  );
  if (y === null) {
    return null;
  }
  const pair: readonly Dimension[] = [x, y];
  return (
    <PlotCard
      title="Scatter"
      description={`${y.name} over ${x.name}, a point for each of ${filtered.length} trials`}
      height={340}
      draw={draw}
      table={() => analysis.table(pair)}
      hover={hover}
      tell={tell}
      tools={
        <>
          <Select
            label="Across"
            value={x.id}
            choices={choicesOf(all)}
            onChange={setX}
          />
          <Select
            label="Up"
            value={y.id}
            choices={choicesOf(all)}
            onChange={setY}
          />
        </>
      }
    />
  );
}

/** Plots of one search: history, slices, contour and rank of two hyperparameters, Pareto front, stages. */

import { useCallback, useMemo, useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import type { ExperimentView } from '../../shared/model';
import { ofExperiment } from '../../shared/requests';
import { lengthText, namedTrials, rungsOf } from '../../shared/searchFacts';
import { useApi, useParameter } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Select } from '../parts/field';
import { Loading } from '../parts/state';
import type { PlotColours } from './frame';
import { PlotCard } from './plotCard';
import {
  contourShapes,
  historyScene,
  paretoFront,
  ranks,
  scatterScene
} from './scenes';
import type { Size } from './shapes';
import { curvesOfMetric, stagesScene } from './stagesScene';
import { comparedMetrics, type Dimension, NUMBER } from './trials';
import { type Analysis, choicesOf } from './useAnalysis';

const HEIGHT = 260;
const MOST_SLICES = 12;
const MOST_CURVES = 1000;

interface Props {
  readonly analysis: Analysis;
  readonly metric: Dimension;
}

export function HistoryPlot({ analysis, metric }: Props) {
  const { filtered, smaller, hover, tell } = analysis;
  const draw = useCallback(
    (size: Size, colours: PlotColours) =>
      historyScene(filtered, metric, smaller, size, colours),
    [filtered, metric, smaller]
  );
  return (
    <PlotCard
      title="Best so far"
      description={`${metric.name} of each trial, with the best value so far as a line`}
      height={HEIGHT}
      draw={draw}
      table={() => analysis.table([NUMBER, metric])}
      hover={hover}
      tell={tell}
    />
  );
}

export function SlicePlots({ analysis, metric }: Props) {
  const { hyperparameters } = analysis.dimensions;
  const [all, setAll] = useState(false);
  const shown = all ? hyperparameters : hyperparameters.slice(0, MOST_SLICES);
  const more = hyperparameters.length - shown.length;
  return (
    <>
      <div class="det-plot-grid">
        {shown.map(dimension => (
          <Slice
            key={dimension.id}
            analysis={analysis}
            metric={metric}
            dimension={dimension}
          />
        ))}
      </div>
      {more > 0 && (
        <Button onClick={() => setAll(true)}>
          {`Show ${more} more hyperparameters`}
        </Button>
      )}
    </>
  );
}

function Slice({
  analysis,
  metric,
  dimension
}: Props & { dimension: Dimension }) {
  const { filtered, hover, tell } = analysis;
  const draw = useCallback(
    (size: Size, colours: PlotColours) =>
      scatterScene({
        trials: filtered,
        x: dimension,
        y: metric,
        colouring: {
          by: 'value',
          dimension: NUMBER,
          smaller: false,
          name: 'Trial'
        },
        size,
        colours
      }),
    [filtered, dimension, metric]
  );
  return (
    <PlotCard
      title={dimension.name}
      description={`${metric.name} over ${dimension.name} of ${filtered.length} trials; later trials are darker`}
      height={220}
      draw={draw}
      table={() => analysis.table([dimension, metric])}
      hover={hover}
      tell={tell}
    />
  );
}

/** Contour and rank over the same two hyperparameters. */
export function PairPlots({ analysis, metric }: Props) {
  const { byId, dimensions, filtered, smaller, hover, tell } = analysis;
  const { hyperparameters } = dimensions;
  const [xId, setX] = useParameter('px');
  const [yId, setY] = useParameter('py');
  const x = byId.get(xId) ?? hyperparameters[0]!;
  const y = byId.get(yId) ?? hyperparameters.find(({ id }) => id !== x.id) ?? x;
  const contour = useCallback(
    (size: Size, colours: PlotColours) =>
      scatterScene({
        trials: filtered,
        x,
        y,
        colouring: { by: 'value', dimension: metric, smaller },
        size,
        colours,
        below: contourShapes(filtered, [x, y, metric], smaller, colours),
        marked: new Set(
          filtered.length <= 300 ? filtered.map(({ key }) => key) : []
        )
      }),
    [filtered, x, y, metric, smaller]
  );
  const rank = useCallback(
    (size: Size, colours: PlotColours) => {
      const places = ranks(filtered, metric, smaller);
      return scatterScene({
        trials: filtered,
        x,
        y,
        colouring: {
          by: 'value',
          dimension: NUMBER,
          smaller: true,
          name: 'Rank',
          value: trial => places.get(trial.key)
        },
        size,
        colours
      });
    },
    [filtered, x, y, metric, smaller]
  );
  const table = () => analysis.table([x, y, metric]);
  return (
    <>
      <div class="det-plot-tools">
        <Select
          label="Across"
          value={x.id}
          choices={choicesOf(hyperparameters)}
          onChange={setX}
        />
        <Select
          label="Up"
          value={y.id}
          choices={choicesOf(hyperparameters)}
          onChange={setY}
        />
      </div>
      <div class="det-plot-grid det-plot-grid-large">
        <PlotCard
          title="Contour"
          description={`${metric.name} over ${x.name} and ${y.name}, as bands of colour between the trials`}
          height={320}
          draw={contour}
          table={table}
          hover={hover}
          tell={tell}
        />
        <PlotCard
          title="Rank"
          description={`Rank of each trial by ${metric.name}, over ${x.name} and ${y.name}`}
          height={320}
          draw={rank}
          table={table}
          hover={hover}
          tell={tell}
        />
      </div>
    </>
  );
}

/** Of a search with several metrics: trials that no other beats in all of them. */
export function ParetoPlot({
  analysis,
  view
}: {
  analysis: Analysis;
  view: ExperimentView;
}) {
  const { filtered, byId, hover, tell } = analysis;
  const metrics = view.experiment ? comparedMetrics(view.experiment) : [];
  const known = metrics.flatMap(({ name }) => byId.get(`metric:${name}`) ?? []);
  const [xId, setX] = useParameter('fx');
  const [yId, setY] = useParameter('fy');
  const x = known.find(({ id }) => id === xId) ?? known[0];
  const y =
    known.find(({ id }) => id === yId) ?? known.find(each => each !== x);
  const names = metrics.map(({ name, smaller }) => `${name}/${smaller}`).join();
  const draw = useCallback(
    (size: Size, colours: PlotColours) => {
      const front = paretoFront(filtered, metrics);
      return scatterScene({
        trials: filtered,
        x: x ?? NUMBER,
        y: y ?? NUMBER,
        colouring: { by: 'none' },
        size,
        colours,
        marked: new Set(front)
      });
    },
    [filtered, x, y, names]
  );
  if (metrics.length < 2 || !x || !y) {
    return null;
  }
  const front = new Set(paretoFront(filtered, metrics));
  const goal = metrics
    .map(({ name, smaller }) => `${name} ${smaller ? 'small' : 'great'}`)
    .join(', ');
  return (
    <PlotCard
      title="Pareto front"
      description={`${y.name} over ${x.name}; ${front.size} trials on the front are outlined`}
      height={320}
      draw={draw}
      table={() => {
        const { columns, rows } = analysis.table(known);
        return {
          columns: [...columns, 'On the front'],
          rows: rows.map((row, at) => [
            ...row,
            front.has(filtered[at]!.key) ? 'yes' : 'no'
          ])
        };
      }}
      hover={hover}
      tell={tell}
      notes={[
        `${front.size} of ${filtered.length.toLocaleString('en')} trials are on the front: no other is better in one metric and as good in the rest (${goal}).`
      ]}
      tools={
        known.length > 2 ? (
          <>
            <Select
              label="Across"
              value={x.id}
              choices={choicesOf(known)}
              onChange={setX}
            />
            <Select
              label="Up"
              value={y.id}
              choices={choicesOf(known)}
              onChange={setY}
            />
          </>
        ) : null
      }
    />
  );
}

/** Values while trials train, and where the search ended them. */
export function StagesPlot({
  analysis,
  metric,
  view
}: Props & { view: ExperimentView }) {
  const api = useApi();
  const { filtered, colouring, hover, tell } = analysis;
  const { id, trials } = view;
  // The feed has the curves of fifty trials; a search may have a thousand.
  const more = trials.length > 50;
  const { data, error } = useLoad(
    more ? `curves ${id} ${metric.name}` : null,
    signal =>
      dataOf(
        api.GET('/api/v1/experiments/{experiment_id}/curves', {
          params: {
            ...ofExperiment(id),
            query: {
              metric: metric.name.replace(/ \((?:training|logged)\)$/, ''),
              trials: MOST_CURVES,
              buckets: 100
            }
          },
          signal
        })
      )
  );
  const loaded = (more ? data : null) ?? view.curves;
  const curves = useMemo(
    () => curvesOfMetric(loaded, metric.name),
    [loaded, metric]
  );
  const draw = useCallback(
    (size: Size, colours: PlotColours) =>
      stagesScene({
        trials: filtered,
        raw: trials,
        curves,
        metric: metric.name,
        colouring,
        size,
        colours
      }),
    [filtered, trials, curves, metric, colouring]
  );
  const rungs = rungsOf(view);
  if (curves.length === 0) {
    return more && data === null && error === null ? (
      <Loading label="Loading the curves…" />
    ) : (
      <p class="det-plot-note">
        No trial has reported values of this metric while it trained.
      </p>
    );
  }
  const words = ['promoted', 'finished', 'stopped', 'training'] as const;
  return (
    <>
      <PlotCard
        title="While the trials train"
        description={`${metric.name} over the batches of each trial; a cross marks a trial that ended early`}
        height={300}
        draw={draw}
        table={() => ({
          columns: ['Trial', 'Batch', metric.name],
          rows: curves.flatMap(({ trial_id: trial, batch, mean }) => {
            const found = filtered.find(each => each.trialId === trial);
            return found
              ? batch.map((at, index) => [found.label, at, mean[index]])
              : [];
          })
        })}
        hover={hover}
        tell={tell}
        notes={[
          rungs.length > 0
            ? 'Dashed lines: stages at which the search decides. Crosses: trials that ended early.'
            : 'Crosses: trials that ended early.'
        ]}
      />
      {rungs.length > 0 && (
        <div class="det-plot-table">
          <table class="det-grid">
            <caption class="det-plot-caption">
              Stages: what became of the trials that trained for each length
            </caption>
            <thead>
              <tr>
                <th scope="col">Length</th>
                {words.map(word => (
                  <th key={word} scope="col" class="det-number">
                    {word[0]!.toUpperCase() + word.slice(1)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rungs.map(rung => (
                <tr key={rung.length}>
                  <th scope="row">
                    {lengthText(view.experiment, rung.length)}
                  </th>
                  {words.map(word => (
                    <td
                      key={word}
                      class="det-number"
                      title={namedTrials(word, rung[word])}
                    >
                      {rung[word].length.toLocaleString('en')}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

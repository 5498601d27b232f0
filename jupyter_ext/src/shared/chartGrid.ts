/** The charts of an experiment: one for each metric. */

import { button, make, setText } from './dom';
import { bestTrial, curvesText } from './facts';
import type { ExperimentView, MetricCurve } from './model';
import { isTerminal } from './model';
import { Chart } from './plot';
import { groupCurves } from './plotData';
import { TEXTS } from './texts';
import { trialNumber } from './trialNumbers';

const FIRST_CHARTS = 6;
let grids = 0;

export class ChartGrid {
  readonly root = make('div', 'det-charts');
  private readonly _grid = make('div', 'det-chart-grid');
  private readonly _empty = make('p', 'det-empty');
  private readonly _note = make('p', 'det-empty');
  private readonly _more = button('det-button', '', () => this._showAll());
  private readonly _charts = new Map<string, Chart>();
  private readonly _sync = `det-native-${(grids += 1)}`;
  private _curves: readonly MetricCurve[] | null = null;
  private _best: number | null = null;
  private _highlighted: number | null = null;
  private _pointed: number | null = null;
  private _numbers: ReadonlyMap<number, number> = new Map();
  private _all = false;
  private _metric = '';

  constructor() {
    this.root.append(this._note, this._grid, this._empty, this._more);
  }

  update(view: ExperimentView): void {
    const best = bestTrial(view)?.id ?? null;
    setText(this._empty, emptyText(view));
    const note = curvesText(view);
    setText(this._note, note);
    this._note.hidden = note === '' || view.curves.length === 0;
    if (this._curves === view.curves && this._best === best) {
      this._empty.hidden = this._charts.size > 0 || view.experiment === null;
      return;
    }
    this._curves = view.curves;
    this._best = best;
    this._numbers = new Map(
      view.trials.map(trial => [trial.id, trialNumber(trial)])
    );
    this._metric = view.experiment?.metric ?? '';
    this._draw(this._metric);
    this._empty.hidden = this._charts.size > 0 || view.experiment === null;
  }

  /**
   * Show the curves of this trial over all others, those of none if it is null.
   *
   * @param pointed - A trial that is only pointed at: its curves stand out, and nothing else changes.
   */
  highlight(trialId: number | null, pointed: number | null = null): void {
    if (this._highlighted !== trialId || this._pointed !== pointed) {
      this._highlighted = trialId;
      this._pointed = pointed;
      this._draw(this._metric);
    }
  }

  dispose(): void {
    this._charts.forEach(chart => chart.dispose());
    this._charts.clear();
  }

  private _draw(metric: string): void {
    const groups = groupCurves(this._curves ?? [], metric);
    const trials = [
      ...new Set((this._curves ?? []).map(curve => curve.trial_id))
    ].sort((one, other) => one - other);
    const shown = [...groups].slice(0, this._all ? undefined : FIRST_CHARTS);
    const names = new Set(shown.map(([name]) => name));
    for (const [name, chart] of this._charts) {
      if (!names.has(name)) {
        chart.dispose();
        this._charts.delete(name);
      }
    }
    shown.forEach(([name, curves], index) => {
      const chart =
        this._charts.get(name) ??
        new Chart(this._grid, { title: name, sync: this._sync });
      this._charts.set(name, chart);
      if (this._grid.children[index] !== chart.root) {
        this._grid.insertBefore(chart.root, this._grid.children[index] ?? null);
      }
      chart.setCurves(curves, {
        trials,
        numbers: this._numbers,
        best: this._best,
        highlighted: this._highlighted,
        pointed: this._pointed
      });
    });
    const hidden = groups.size - shown.length;
    this._more.hidden = hidden <= 0;
    setText(
      this._more,
      `Show ${hidden} more ${hidden === 1 ? 'metric' : 'metrics'}`
    );
  }

  private _showAll(): void {
    this._all = true;
    this._draw(this._metric);
  }
}

/** Why there is no chart: where a best value is known, there are metrics. */
function emptyText(view: ExperimentView): string {
  const { experiment } = view;
  const ended = experiment !== null && isTerminal(experiment.state);
  const best = experiment?.best_validation ?? bestTrial(view)?.best_validation;
  if (typeof best === 'number') {
    return ended ? TEXTS.noCurvesEnded : TEXTS.noCurves;
  }
  return ended ? TEXTS.noMetricsEnded : TEXTS.noMetrics;
}

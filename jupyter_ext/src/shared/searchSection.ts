/** A search seen: best value so far, rungs, and which values of hyperparameters were good. */

import { make, setText } from './dom';
import { formatDuration, formatValue } from './format';
import { formatHparams } from './hparams';
import type { ExperimentDetail, ExperimentView } from './model';
import type { Rung, SearchAxis, SearchPoint } from './searchFacts';
import {
  axisOf,
  bestSoFar,
  differingNames,
  isLogarithmic,
  isSearch,
  lengthText,
  MOST_AXES,
  namedTrials,
  pointsOf,
  rungsOf
} from './searchFacts';
import { Section } from './sections';
import type { Box } from './svg';
import { dot, figure, label, line, plotArea, shape } from './svg';
import { TEXTS } from './texts';
import { trialNumber } from './trialNumbers';

/** Of a search with many trials, events come faster than anybody looks. */
const REDRAW_MILLISECONDS = 500;

const SMALL: Box = {
  width: 300,
  height: 170,
  left: 62,
  right: 12,
  top: 8,
  bottom: 22
};
const WIDE: Box = {
  width: 940,
  height: 230,
  left: 60,
  right: 60,
  top: 26,
  bottom: 14
};

export class SearchSection {
  readonly root: HTMLElement;
  private readonly _section: Section;
  private readonly _panels = make('div', 'det-search-panels');
  private readonly _told = make('p', 'det-search-told', { 'aria-live': 'off' });
  private _view: ExperimentView | null = null;
  private _drawn = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _texts = new Map<number, string>();
  private _highlighted: number | null = null;

  constructor() {
    const body = make('div', 'det-search', {}, this._told, this._panels);
    this._section = new Section(body, true);
    this.root = this._section.root;
    this.root.addEventListener('toggle', () => this._draw());
    this._panels.addEventListener('pointerover', ({ target }) => {
      const found = (target as Element).closest('[data-trial]');
      this._mark(found ? Number(found.getAttribute('data-trial')) : null);
    });
    this._panels.addEventListener('pointerleave', () => this._mark(null));
  }

  update(view: ExperimentView): void {
    this._view = view;
    this.root.hidden = !isSearch(view);
    if (!this.root.hidden && this._timer === undefined) {
      this._draw();
      this._timer = setTimeout(() => {
        this._timer = undefined;
        this._draw();
      }, REDRAW_MILLISECONDS);
    }
  }

  /** Mark a trial that is looked at elsewhere. */
  highlight(trialId: number | null): void {
    this._highlighted = trialId;
    this._mark(null);
  }

  dispose(): void {
    clearTimeout(this._timer);
  }

  private _draw(): void {
    const view = this._view;
    if (
      view === null ||
      this.root.hidden ||
      !(this.root as HTMLDetailsElement).open
    ) {
      return;
    }
    const seen = view.trials.map(
      ({ id, state, best_validation, best_at, ended, stages }) =>
        `${id} ${state} ${best_validation} ${best_at} ${ended} ${stages?.length}`
    );
    const drawn = `${view.experiment?.metric} ${seen.join('|')}`;
    if (drawn === this._drawn) {
      return;
    }
    this._drawn = drawn;
    const points = pointsOf(view);
    const metric = view.experiment?.metric ?? '';
    this._section.show(
      'Search',
      points.length > 0 ? null : TEXTS.noSearchValues
    );
    this._texts = new Map(
      points.map(({ trial, value }) => [
        trial.id,
        `trial ${trialNumber(trial)}: ${metric} ${formatValue(value)}, ${formatHparams(trial.hparams)}`
      ])
    );
    const names = differingNames(view.trials);
    const axes = names.slice(0, MOST_AXES).map(name =>
      axisOf(
        name,
        points.flatMap(({ hparams }) =>
          hparams.has(name) ? [hparams.get(name)] : []
        ),
        isLogarithmic(view.experiment, name)
      )
    );
    const values = axisOf(
      metric,
      points.map(({ value }) => value)
    );
    const rungs = rungsOf(view);
    this._panels.replaceChildren(
      drawBest(view, values),
      ...(rungs.length > 0 ? [drawRungs(rungs, view.experiment)] : []),
      ...axes.map(axis => drawScatter(axis, values, points)),
      ...(axes.length > 1 ? [drawParallel([...axes, values], points)] : []),
      ...(names.length > MOST_AXES
        ? [
            make(
              'p',
              'det-empty',
              {},
              `Not drawn: ${names.slice(MOST_AXES).join(', ')}.`
            )
          ]
        : [])
    );
    this._mark(null);
  }

  private _mark(pointed: number | null): void {
    const shown = pointed ?? this._highlighted;
    this._panels
      .querySelectorAll('.det-marked')
      .forEach(each => each.classList.remove('det-marked'));
    if (shown !== null) {
      this._panels
        .querySelectorAll(`[data-trial="${shown}"]`)
        .forEach(each => each.classList.add('det-marked'));
    }
    const best = [...this._texts.values()].at(-1);
    setText(
      this._told,
      (shown !== null && this._texts.get(shown)) ||
        (best ? `Best: ${best}` : '')
    );
  }
}

function drawBest(view: ExperimentView, values: SearchAxis): HTMLElement {
  const steps = bestSoFar(view);
  const end = steps.at(-1)?.seconds ?? 0;
  const time: SearchAxis = {
    name: 'time',
    labels: [
      { place: 0, text: '0 s' },
      { place: 1, text: formatDuration(end) }
    ],
    place: value => (end > 0 ? Number(value) / end : 1)
  };
  const area = plotArea(SMALL, time, values);
  const corners = steps.flatMap(
    ({ seconds, best }, index): Array<[number, number]> => {
      const x = area.x(time.place(seconds) ?? 0);
      const y = area.y(values.place(best) ?? 0);
      const before = steps[index - 1];
      return before
        ? [
            [x, area.y(values.place(before.best) ?? 0)],
            [x, y]
          ]
        : [[x, y]];
    }
  );
  const last = steps.at(-1);
  const text = last
    ? `${steps.length} trials have a value, the best ${values.name} is ${formatValue(last.best)}`
    : 'no trial has a value yet';
  return figure('Best so far', `Best so far over time: ${text}`, SMALL, [
    ...area.frame,
    ...steps.map(({ trialId, seconds, value }) =>
      dot(
        area.x(time.place(seconds) ?? 0),
        area.y(values.place(value) ?? 0),
        trialId
      )
    ),
    shape(corners, 'det-search-best')
  ]);
}

function drawScatter(
  axis: SearchAxis,
  values: SearchAxis,
  points: readonly SearchPoint[]
): HTMLElement {
  const area = plotArea(SMALL, axis, values);
  const best = points.at(-1)?.trial.id;
  const dots = points.flatMap(({ trial, value, hparams }) => {
    const x = axis.place(hparams.get(axis.name));
    const y = values.place(value);
    return x === null || y === null
      ? []
      : [dot(area.x(x), area.y(y), trial.id, trial.id === best)];
  });
  const text = `${values.name} over ${axis.name} of ${dots.length} trials`;
  return figure(axis.name, text, SMALL, [...area.frame, ...dots]);
}

/** A line for each trial through its values; the better, the darker. */
function drawParallel(
  axes: readonly SearchAxis[],
  points: readonly SearchPoint[]
): HTMLElement {
  const { width, height, left, right, top, bottom } = WIDE;
  const step = (width - left - right) / (axes.length - 1);
  const y = (place: number) =>
    height - bottom - place * (height - top - bottom);
  const lines = points.map(({ trial, value, hparams }, rank) => {
    const corners = axes.flatMap((axis, index): Array<[number, number]> => {
      const last = index === axes.length - 1;
      const place = axis.place(last ? value : hparams.get(axis.name));
      return place === null ? [] : [[left + index * step, y(place)]];
    });
    const best = rank === points.length - 1;
    const path = shape(
      corners,
      best ? 'det-search-line det-best' : 'det-search-line'
    );
    path.setAttribute('data-trial', String(trial.id));
    if (!best) {
      const share = rank / Math.max(points.length - 1, 1);
      path.style.opacity = String(0.12 + 0.55 * share ** 2);
    }
    return path;
  });
  const frame = axes.flatMap((axis, index) => {
    const x = left + index * step;
    return [
      line(x, top, x, height - bottom),
      label(x, 10, axis.name, 'middle', 'det-search-name'),
      ...axis.labels.map(({ place, text }) =>
        label(x + 4, y(place) + 4, text, 'start')
      )
    ];
  });
  const text = `All values of ${points.length} trials, a line for each, the best one thick`;
  const drawn = figure('All values', text, WIDE, [...lines, ...frame]);
  drawn.classList.add('det-search-wide');
  return drawn;
}

function drawRungs(
  rungs: readonly Rung[],
  experiment: ExperimentDetail | null
): HTMLElement {
  const most = Math.max(
    ...rungs.map(({ promoted, finished, stopped, training }) =>
      [promoted, finished, stopped, training].reduce(
        (sum, { length }) => sum + length,
        0
      )
    )
  );
  const rows = rungs.map(rung => {
    const { length, promoted, finished, stopped, training } = rung;
    const parts = [
      { word: 'promoted', ids: promoted },
      { word: 'finished', ids: finished },
      { word: 'stopped', ids: stopped },
      { word: 'training', ids: training }
    ].filter(({ ids }) => ids.length > 0);
    const bars = parts.map(({ word, ids }) => {
      const bar = make('span', `det-rung-${word}`, {
        title: namedTrials(word, ids)
      });
      bar.style.width = `${(100 * ids.length) / most}%`;
      return bar;
    });
    const counts = parts
      .map(({ word, ids }) => `${ids.length} ${word}`)
      .join(', ');
    const who = parts.map(({ word, ids }) => namedTrials(word, ids)).join('; ');
    return make(
      'div',
      'det-rung',
      { title: who },
      make('span', 'det-rung-length', {}, lengthText(experiment, length)),
      make('span', 'det-rung-bar', { 'aria-hidden': 'true' }, ...bars),
      make('span', 'det-rung-counts', {}, counts),
      make('span', 'det-rung-who', {}, who)
    );
  });
  return make(
    'figure',
    'det-search-panel det-rungs',
    { 'aria-label': 'Rungs' },
    make('figcaption', 'det-chart-title', {}, 'Rungs'),
    ...rows
  );
}

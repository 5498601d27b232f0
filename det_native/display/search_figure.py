"""A search as a matplotlib figure: what it has found so far, how far trials were trained, which values were good."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matplotlib.ticker import MaxNLocator

from det_native.client.pareto import Values, compared, front
from det_native.client.short_forms import format_value
from det_native.display.figure import (
    INK,
    OTHER_TRIALS_COLOUR,
    TRIAL_COLOURS,
    CurvesFigure,
    new_figure,
    plain_text,
    style_panel,
)
from det_native.display.hparams import flat_hparams
from det_native.schema import rest
from det_native.schema.hyperparameters import LogHyperparameter, leaves, parse_space
from det_native.schema.states import TrialState

COLUMNS = 3
PANEL_WIDTH = 3.2
PANEL_HEIGHT = 2.5
# More would be too small to be read.
MOST_VALUES = 12
_BEST = TRIAL_COLOURS[0]


@dataclass(frozen=True)
class _Point:
    """A trial that has a value of the searcher's metric."""

    number: int
    value: float
    hparams: Mapping[str, Any]
    seconds: float | None


def draw_search(
    experiment: rest.ExperimentDetail, trials: Sequence[rest.Trial], values: Mapping[int, Values] | None = None
) -> CurvesFigure:
    """Draw the search of an experiment.

    Panels: the best value over time, how many trials were trained how far, the metric over each hyperparameter that
    differs between trials, and all of these beside each other (parallel coordinates) where there are two or more. Where
    trials are compared by several metrics, each but the first has a panel over the first, with the Pareto front.

    Parameters
    ----------
    trials : sequence of Trial
        All of its trials.
    values : mapping, optional
        Where trials are compared by several metrics: what each has come to, by its id.
    """
    several = compared(experiment)
    points = _points(experiment, trials)
    best = (min if experiment.smaller_is_better else max)(points, key=lambda point: point.value, default=None)
    names = _differing(trials)
    shown, left_out = names[:MOST_VALUES], names[MOST_VALUES:]
    others = range(1, len(several)) if values else range(0)
    rows = -(-(2 + len(others) + len(shown)) // COLUMNS)
    parallel = len(shown) > 1 and len(points) > 1
    height = PANEL_HEIGHT * (rows + parallel)
    figure = new_figure(PANEL_WIDTH * COLUMNS, height, _title(experiment, trials, points, best, left_out))
    if best is None:
        figure.text(0.5, 0.45, f"no trial has a value of {experiment.metric or 'a metric'} yet", ha="center", color=INK)
        return figure
    grid = figure.add_gridspec(rows + parallel, COLUMNS)
    places = [grid[index // COLUMNS, index % COLUMNS] for index in range(2 + len(others) + len(shown))]
    _draw_best_so_far(style_panel(figure.add_subplot(places[0]), "best so far"), experiment, points)
    _draw_lengths(style_panel(figure.add_subplot(places[1]), "trials by batches trained"), trials, best.number)
    logarithmic = _logarithmic(experiment)
    for place, other in zip(places[2:], others, strict=False):
        _draw_front(style_panel(figure.add_subplot(place), several[other][0]), several, other, values or {})
    for place, name in zip(places[2 + len(others) :], shown, strict=True):
        _draw_values(style_panel(figure.add_subplot(place), name), name, points, best, logarithmic=name in logarithmic)
    if parallel:
        axis = style_panel(
            figure.add_subplot(grid[rows, :]), f"all values, and {experiment.metric} (the best is drawn thick)"
        )
        _draw_parallel(axis, experiment, shown, points, best, logarithmic)
    return figure


def _points(experiment: rest.ExperimentDetail, trials: Sequence[rest.Trial]) -> list[_Point]:
    begun = min((trial.created for trial in trials), default=None)
    found = []
    for trial in trials:
        value = trial.best_validation
        if value is not None and math.isfinite(value):
            reached = trial.best_at or trial.ended
            seconds = max(_seconds_between(begun, reached), 0.0) if begun and reached else None
            found.append(_Point(trial.shown_number, value, flat_hparams(trial.hparams), seconds))
    return found


def _seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def _differing(trials: Sequence[rest.Trial]) -> list[str]:
    """Return the names of hyperparameters that have more than one value, in order of their names."""
    values: dict[str, set[str]] = {}
    for trial in trials:
        for name, value in flat_hparams(trial.hparams).items():
            values.setdefault(name, set()).add(repr(value))
    return [name for name, different in values.items() if len(different) > 1]


def _title(
    experiment: rest.ExperimentDetail,
    trials: Sequence[rest.Trial],
    points: Sequence[_Point],
    best: _Point | None,
    left_out: Sequence[str],
) -> str:
    searcher = (experiment.config.get("searcher") or {}).get("name", "single")
    parts = [f"{experiment.name or f'Experiment {experiment.id}'}: {searcher}, {len(trials)} trials"]
    if best is not None:
        parts.append(f"best {experiment.metric} {best.value:.4g} (trial {best.number})")
    failed = sum(trial.state is TrialState.ERROR for trial in trials)
    if failed:
        parts.append(f"{failed} failed")
    if left_out:
        parts.append(f"not drawn: {', '.join(left_out)}")
    return "; ".join(parts)


def _logarithmic(experiment: rest.ExperimentDetail) -> set[str]:
    space = parse_space(experiment.config.get("hyperparameters") or {})
    return {".".join(path) for path, leaf in leaves(space) if isinstance(leaf, LogHyperparameter)}


def _draw_best_so_far(axis: Any, experiment: rest.ExperimentDetail, points: Sequence[_Point]) -> None:
    """Draw each trial where it had its best value (where that is not known: at its end), and the best until then."""
    reached = sorted((point.seconds, point.value) for point in points if point.seconds is not None)
    if not reached:
        axis.text(0.5, 0.5, "no trial has ended yet", ha="center", color=INK, fontsize=8, transform=axis.transAxes)
        return
    unit, name = next((size, word) for size, word in ((3600, "hours"), (60, "minutes"), (1, "seconds")) if
                      reached[-1][0] >= 2 * size or size == 1)  # fmt: skip
    times = [seconds / unit for seconds, _ in reached]
    better = min if experiment.smaller_is_better else max
    best: list[float] = []
    for _, value in reached:
        best.append(better(best[-1], value) if best else value)
    axis.scatter(times, [value for _, value in reached], s=8, color=OTHER_TRIALS_COLOUR)
    axis.step(times, best, where="post", color=_BEST, linewidth=1.8, marker="o" if len(reached) == 1 else None)
    axis.set_xlabel(name, fontsize=8, color=INK)


def _draw_front(axis: Any, metrics: Sequence[tuple[str, bool]], other: int, values: Mapping[int, Values]) -> None:
    """Draw one metric over the first, and the trials of the Pareto front of all metrics joined by a line."""
    axis.scatter([each[0] for each in values.values()], [each[other] for each in values.values()], s=10,
                 color=OTHER_TRIALS_COLOUR)  # fmt: skip
    best = sorted(values[number] for number in front(values, [smaller for _, smaller in metrics]))
    line = "-" if len(metrics) == 2 else ""  # of more metrics, two do not show what joins them
    axis.plot([each[0] for each in best], [each[other] for each in best], marker="o", markersize=4, color=_BEST,
              linestyle=line, linewidth=1.2)  # fmt: skip
    axis.set_xlabel(plain_text(metrics[0][0]), fontsize=8, color=INK)


def _draw_lengths(axis: Any, trials: Sequence[rest.Trial], best: int) -> None:
    """Draw how many trials have come how far; the bar of the best one has its colour."""
    counts = Counter(trial.batches for trial in trials)
    lengths = sorted(counts)
    of_best = next(trial.batches for trial in trials if trial.shown_number == best)
    if len(lengths) > MOST_VALUES:  # trials that end anywhere
        axis.hist([trial.batches for trial in trials], bins=MOST_VALUES, color=OTHER_TRIALS_COLOUR)
        axis.set_xlabel("batches", fontsize=8, color=INK)
        axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
        return
    colours = [_BEST if length == of_best else OTHER_TRIALS_COLOUR for length in lengths]
    bars = axis.barh([f"{length:,}" for length in lengths], [counts[length] for length in lengths], color=colours)
    axis.bar_label(bars, fontsize=8, color=INK, padding=2)
    axis.set_xlabel("trials", fontsize=8, color=INK)
    axis.margins(x=0.15)
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _draw_values(axis: Any, name: str, points: Sequence[_Point], best: _Point, *, logarithmic: bool) -> None:
    having = [point for point in points if name in point.hparams]
    positions = _positions([point.hparams[name] for point in having], logarithmic=logarithmic)
    axis.scatter(positions.places, [point.value for point in having], s=10, color=OTHER_TRIALS_COLOUR)
    for place, point in zip(positions.places, having, strict=True):
        if point is best:
            axis.scatter([place], [point.value], s=32, color=_BEST, zorder=3)
    if positions.logarithmic:
        axis.set_xscale("log")
    if positions.labels:
        axis.set_xticks(range(len(positions.labels)), [plain_text(label) for label in positions.labels])
        axis.set_xlim(-0.5, len(positions.labels) - 0.5)


@dataclass(frozen=True)
class _Positions:
    """Where values stand on an axis: numbers by themselves, others by their place among all that there are."""

    places: list[float]
    labels: list[str]
    logarithmic: bool


def _positions(values: Sequence[Any], *, logarithmic: bool) -> _Positions:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        places = [float(value) for value in values]
        return _Positions(places, [], logarithmic and min(places, default=1.0) > 0)
    texts = [format_value(value) for value in values]
    labels = sorted(set(texts))
    return _Positions([float(labels.index(text)) for text in texts], labels, logarithmic=False)


def _draw_parallel(
    axis: Any,
    experiment: rest.ExperimentDetail,
    names: Sequence[str],
    points: Sequence[_Point],
    best: _Point,
    logarithmic: set[str],
) -> None:
    """Draw a line for each trial through its values, each scaled to the height of the panel; better ones are darker.

    The line passes by the hyperparameters that a trial does not have.
    """
    lines: list[tuple[list[int], list[float]]] = [([], []) for _ in points]
    for column, name in enumerate(names):
        having = [index for index, point in enumerate(points) if name in point.hparams]
        values = [points[index].hparams[name] for index in having]
        for index, height in zip(having, _scaled(_positions(values, logarithmic=name in logarithmic)), strict=True):
            lines[index][0].append(column)
            lines[index][1].append(height)
    metric = _scaled(_Positions([point.value for point in points], [], logarithmic=False))
    sign = 1 if experiment.smaller_is_better else -1
    order = sorted(range(len(points)), key=lambda index: -sign * points[index].value)
    for rank, index in enumerate(order):
        columns, heights = [*lines[index][0], len(names)], [*lines[index][1], metric[index]]
        if points[index] is best:
            axis.plot(columns, heights, color=_BEST, linewidth=2.4, zorder=3)
        else:
            alpha = 0.1 + 0.5 * (rank / max(len(order) - 1, 1)) ** 2
            axis.plot(columns, heights, color=_BEST, linewidth=0.8, alpha=alpha)
    axis.set_xticks(range(len(names) + 1), [plain_text(name) for name in (*names, experiment.metric)])
    axis.set_yticks([0, 1], ["lowest", "highest"])
    axis.grid(visible=True, axis="x", alpha=0.6)


def _scaled(positions: _Positions) -> list[float]:
    places = [math.log(place) for place in positions.places] if positions.logarithmic else positions.places
    low, high = min(places, default=0.0), max(places, default=1.0)
    return [(place - low) / (high - low) if high > low else 0.5 for place in places]

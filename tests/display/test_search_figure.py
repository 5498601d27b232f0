"""The figure of a search."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from made_experiments import make_experiment

from det_native.display.figure import TRIAL_COLOURS, CurvesFigure
from det_native.display.search_figure import draw_search
from det_native.schema import rest
from det_native.schema.states import ExperimentState, TrialState

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
SPACE = {
    "lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1},
    "units": {"type": "int", "minval": 8, "maxval": 64},
    "model": {"act": {"type": "categorical", "vals": ["relu", "tanh"]}},
    "depth": 3,
}


def experiment(**changes: Any) -> rest.ExperimentDetail:
    detail = make_experiment(metric="val_loss").detail()
    config = {"searcher": {"name": "adaptive_asha"}, "hyperparameters": SPACE}
    return detail.model_copy(update={"config": config, "name": "digits", "state": ExperimentState.ACTIVE} | changes)


def trial(number: int, value: float | None, **changes: Any) -> rest.Trial:
    draws = random.Random(number)
    hparams = {
        "lr": 10 ** draws.uniform(-4, -1),
        "units": draws.randint(8, 64),
        "model": {"act": draws.choice(["relu", "tanh"])},
        "depth": 3,
    }
    ended = BEGUN + timedelta(seconds=60 * number)
    known = rest.Trial(
        id=number,
        experiment_id=1,
        state=TrialState.COMPLETED,
        hparams=hparams,
        seed=number,
        restarts=0,
        run_id=None,
        batches=100 if number % 3 else 300,
        target_batches=300,
        best_validation=value,
        error=None,
        created=BEGUN.isoformat(),
        started=BEGUN.isoformat(),
        ended=ended.isoformat(),
    )
    return known.model_copy(update=changes)


def titles(figure: CurvesFigure) -> list[str]:
    return [axis.get_title() for axis in figure.axes]


def test_what_it_has_found_how_far_trials_came_and_each_value_that_differs() -> None:
    values = [0.5, 0.2, 0.9, 0.4, 0.3, 0.7]
    figure = draw_search(experiment(), [trial(number + 1, value) for number, value in enumerate(values)])
    assert figure.get_suptitle() == "digits: adaptive_asha, 6 trials; best val_loss 0.2 (trial 2)"
    best_so_far, lengths, *panels, parallel = figure.axes
    assert [axis.get_title() for axis in panels] == ["lr", "model.act", "units"]
    [line] = best_so_far.get_lines()
    assert list(line.get_xdata()) == [1, 2, 3, 4, 5, 6]
    assert list(line.get_ydata()) == [0.5, 0.2, 0.2, 0.2, 0.2, 0.2]
    assert best_so_far.get_xlabel() == "minutes"
    assert [
        (label.get_text(), bar.get_width())
        for label, bar in zip(lengths.get_yticklabels(), lengths.patches, strict=True)
    ] == [
        ("100", 4),
        ("300", 2),
    ]
    assert panels[0].get_xscale() == "log"
    assert [label.get_text() for label in panels[1].get_xticklabels()] == ["relu", "tanh"]
    assert len(panels[2].collections[0].get_offsets()) == 6
    assert [label.get_text() for label in parallel.get_xticklabels()] == ["lr", "model.act", "units", "val_loss"]
    assert len(parallel.get_lines()) == 6
    [thick] = [line for line in parallel.get_lines() if line.get_linewidth() > 2]
    assert thick.get_ydata()[-1] == 0, "the lowest is the best"
    assert thick.get_color() == TRIAL_COLOURS[0]


def test_trials_without_a_hyperparameter_are_among_all_values_too() -> None:
    having = {"optimizer": "sgd", "momentum": 0.9, "lr": 0.1}
    trials = [
        trial(1, 0.5, hparams=having),
        trial(2, 0.7, hparams=having | {"momentum": 0.1}),
        trial(3, 0.2, hparams={"optimizer": "adam", "lr": 0.01}),
    ]
    *_, parallel = draw_search(experiment(), trials).axes
    names = [label.get_text() for label in parallel.get_xticklabels()]
    lines = {line.get_linewidth(): list(line.get_xdata()) for line in parallel.get_lines()}
    assert names == ["lr", "momentum", "optimizer", "val_loss"]
    assert len(parallel.get_lines()) == 3
    assert lines[2.4] == [0, 2, 3], "the best one, which has no momentum"


def test_the_greatest_value_is_the_best_where_that_is_said() -> None:
    figure = draw_search(experiment(smaller_is_better=False), [trial(1, 0.5), trial(2, 0.2), trial(3, 0.9)])
    assert "best val_loss 0.9 (trial 3)" in figure.get_suptitle()
    assert list(figure.axes[0].get_lines()[0].get_ydata()) == [0.5, 0.5, 0.9]


def test_the_best_so_far_is_drawn_where_the_value_was_there() -> None:
    early = (BEGUN + timedelta(seconds=30)).isoformat()
    running = trial(2, 0.2, ended=None, state=TrialState.RUNNING, best_at=(BEGUN + timedelta(seconds=90)).isoformat())
    figure = draw_search(experiment(), [trial(1, 0.5, best_at=early), running, trial(3, 0.9)])
    [line] = figure.axes[0].get_lines()
    assert list(line.get_xdata()) == [0.5, 1.5, 3], "minutes: the value of a trial that runs counts; one of old ends"
    assert list(line.get_ydata()) == [0.5, 0.2, 0.2]


def test_trials_without_a_value_are_told_and_not_drawn() -> None:
    trials = [trial(1, 0.5), trial(2, None, state=TrialState.ERROR), trial(3, math.inf), trial(4, 0.6, ended=None)]
    figure = draw_search(experiment(), trials)
    assert "4 trials; best val_loss 0.5 (trial 1); 1 failed" in figure.get_suptitle()
    assert len(figure.axes[0].get_lines()[0].get_xdata()) == 1, "one has ended with a value"
    assert sum(bar.get_width() for bar in figure.axes[1].patches) == 4
    assert len(figure.axes[2].collections[0].get_offsets()) == 2


@pytest.mark.parametrize("trials", [[], [trial(1, None)]])
def test_before_the_first_value_it_says_so(trials: list[rest.Trial]) -> None:
    figure = draw_search(experiment(), trials)
    assert [text.get_text() for text in figure.texts][-1] == "no trial has a value of val_loss yet"
    assert figure.png().startswith(b"\x89PNG")


def test_many_trials_and_many_values_stay_readable() -> None:
    wide = {f"h{number}": number for number in range(20)}
    draws = random.Random(0)
    trials = [
        trial(number, draws.random(), batches=number, hparams={name: draws.random() for name in wide})
        for number in range(1, 501)
    ]
    figure = draw_search(experiment(config={"searcher": {"name": "random"}, "hyperparameters": wide}), trials)
    assert len(titles(figure)) == 2 + 12 + 1
    assert "not drawn: h12, h13" in figure.get_suptitle()
    assert sum(bar.get_height() for bar in figure.axes[1].patches) == 500
    assert figure.png().startswith(b"\x89PNG")


def test_a_handle_draws_its_search() -> None:
    figure = make_experiment(trials=4).plot("search")
    assert isinstance(figure, CurvesFigure)
    assert titles(figure) == ["best so far", "trials by batches trained", "lr"]
    assert make_experiment(trials=2).plot("loss").axes[0].get_title() == "loss"


def test_several_metrics_have_a_panel_with_their_front() -> None:
    metrics = [{"name": "val_loss"}, {"name": "speed", "smaller_is_better": False}]
    config = {"searcher": {"name": "optuna", "metrics": metrics}, "hyperparameters": SPACE}
    values = {1: (0.5, 9.0), 2: (0.2, 3.0), 3: (0.6, 8.0), 4: (0.3, 7.0)}
    found = [trial(number, each[0]) for number, each in values.items()]
    figure = draw_search(experiment(config=config), found, values)
    [panel] = [axis for axis in figure.axes if axis.get_title() == "speed"]
    [line] = panel.lines
    assert line.get_xydata().tolist() == [[0.2, 3.0], [0.3, 7.0], [0.5, 9.0]]
    assert panel.get_xlabel() == "val_loss"

"""What a search will run, told before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

import det_native as det
from det_native.client.command import cli
from det_native.errors import ConfigurationError

ASHA = {"name": "async_halving", "metric": "m", "max_length": 900, "divisor": 3, "num_rungs": 3, "max_trials": 27}


def config(**searcher: Any) -> dict[str, Any]:
    return {
        "searcher": searcher,
        "hyperparameters": {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}},
        "records_per_epoch": 64,
        "reproducibility": {"experiment_seed": 3},
    }


def test_a_search_that_stops_trials_early_is_counted_by_its_stages() -> None:
    preview = det.preview_search(config(**ASHA))
    assert len(preview.trials) == 27
    stages = preview.stages
    assert [units for _, units in stages] == [[100], [100, 300], [100, 300, 900]]
    assert sum(count for count, _ in stages) == 27
    assert stages[0][0] >= 15
    assert preview.units == sum(count * units[-1] for count, units in stages)
    lines = str(preview).splitlines()
    assert lines[0].startswith(f"async_halving: 27 trials, {preview.units:,} batches in all, ")
    assert lines[0].endswith("% of training all to the end")
    assert lines[1] == "trials  batches trained"
    assert lines[-2].split() == [str(stages[2][0]), "100,", "then", "300,", "then", "900"]
    assert "metrics drawn at random" in lines[-1]


def test_one_that_trains_all_to_the_end_is_one_line() -> None:
    preview = det.preview_search(config(name="random", metric="m", max_length={"epochs": 2}, max_trials=4))
    assert str(preview) == "random: 4 trials, 8 epochs in all\ntrials  epochs trained\n     4  2"
    single = det.preview_search(config(metric="m", max_length=7))
    assert str(single).startswith("single: 1 trial, 7 batches in all")


def test_a_population_has_no_length_to_be_supposed() -> None:
    pbt = {
        "name": "pbt",
        "metric": "m",
        "population_size": 4,
        "num_rounds": 3,
        "length_per_round": {"batches": 10},
        "replace_function": {"truncate_fraction": 0.25},
        "explore_function": {"resample_probability": 0.2, "perturb_factor": 0.2},
    }
    assert "max_length" not in str(det.preview_search(config(**pbt)))
    assert "no searcher.max_length" in str(det.preview_search(config(name="random", metric="m", max_trials=4)))


def test_a_pruner_is_seen() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    optuna = {"name": "optuna", "metric": "m", "max_trials": 20, "sampler": "random", "max_length": {"epochs": 10}}
    whole = det.preview_search(config(**optuna))
    assert whole.stages == [(20, [10])]
    pruned = det.preview_search(config(**optuna, pruner={"name": "median", "n_startup_trials": 3}))
    assert len(pruned.trials) == 20
    assert pruned.units < whole.units
    assert "metrics drawn at random" in str(pruned)
    assert pruned.stages[-1][1] == [10]
    several = det.preview_search(config(**optuna | {"metric": None, "metrics": ["a", "b"]}))
    assert several.stages == whole.stages
    with pytest.raises(ConfigurationError, match=r"searcher\.pruner: is 'medium'.*Did you mean median"):
        det.preview_search(config(**optuna, pruner="medium"))


def test_a_population_is_told_though_it_cannot_be_run_yet() -> None:
    replace, explore = {"truncate_fraction": 0.5}, {"resample_probability": 0, "perturb_factor": 0.1}
    preview = det.preview_search(
        config(name="pbt", metric="m", population_size=2, num_rounds=2, length_per_round=200,
               replace_function=replace, explore_function=explore)
    )  # fmt: skip
    assert preview.stages == [(2, [200]), (1, [200, 400])]


@pytest.mark.parametrize("trials", [3, 500])
def test_it_is_drawn_with_a_bar_for_each_trial(trials: int) -> None:
    figure = det.preview_search(config(**ASHA | {"max_trials": trials})).plot()
    assert isinstance(figure, Figure)
    [axes] = figure.axes
    assert len(axes.patches) == trials
    assert f"{trials} trials" in axes.get_title()
    assert max(bar.get_width() for bar in axes.patches) == pytest.approx(900 if trials > 27 else 300, abs=600)


def test_a_configuration_that_is_wrong_is_refused_as_at_submit() -> None:
    with pytest.raises(ConfigurationError, match=r"searcher\.max_trials"):
        det.preview_search(config(name="random", metric="m", max_length=4))


def test_the_command_prints_the_same(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    path.write_text(json.dumps(config(**ASHA)))
    expected = det.preview_search(config(**ASHA))
    told = CliRunner().invoke(cli, ["preview-search", str(path)])
    assert (told.exit_code, told.output) == (0, f"{expected}\n")
    told = CliRunner().invoke(cli, ["preview-search", str(path), "--json"])
    assert json.loads(told.output) == expected.to_json()
    told = CliRunner().invoke(cli, ["preview-search", str(tmp_path / "missing.yaml")])
    assert told.exit_code == 2
    assert "does not exist" in told.output


def test_a_length_that_the_configuration_does_not_say_is_said_to_be_supposed() -> None:
    told = str(det.preview_search(config(name="random", metric="m", max_trials=4, max_length={"batches": 100})))
    assert str(det.preview_search(config(name="random", metric="m", max_trials=4))) == (
        f"{told}\nThe configuration has no searcher.max_length, so 100 batches are supposed here; what fit() is given "
        "may say another length."
    )


def test_what_init_takes_is_previewed_too() -> None:
    """Lengths in epochs without the numbers of records, which the call says: the README's example."""
    searcher = {"name": "adaptive_asha", "metric": "val_loss", "max_length": {"epochs": 27}, "max_trials": 30}
    rate = {"lr": {"type": "log", "minval": -4, "maxval": -1, "base": 10}}
    preview = det.preview_search({"searcher": searcher, "hyperparameters": rate})
    assert (len(preview.trials), preview.unit, max(stages[-1] for stages in preview.trials)) == (30, "epochs", 27)
    del searcher["max_length"], searcher["metric"]
    silent = str(det.preview_search({"searcher": searcher, "hyperparameters": rate}))
    assert silent.startswith("adaptive_asha: 30 trials, ")
    assert "so 100 batches are supposed here" in silent
    assert str(det.preview_search({})).startswith("single: 1 trial, 100 batches in all")

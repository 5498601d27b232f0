"""Names of older versions of Determined mean what they meant there."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.errors import ConfigurationError
from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config
from det_native.schema.older_names import Modernised

BATCH = {"global_batch_size": 32}


def load(searcher: dict[str, Any], **fields: Any) -> ExperimentConfig:
    return load_config({"searcher": {"metric": "m", **searcher}, "hyperparameters": BATCH, **fields})


@pytest.mark.parametrize(
    ("older", "fields", "batches"),
    [
        ({"name": "single", "max_steps": 5}, {}, 500),
        ({"name": "single", "max_steps": 5}, {"batches_per_step": 20}, 100),
        ({"name": "single", "max_steps": 5}, {"scheduling_unit": 10}, 50),
        ({"name": "random", "max_steps": 5, "max_trials": 2}, {}, 500),
        ({"name": "adaptive_simple", "max_steps": 5, "max_trials": 2}, {}, 500),
        ({"name": "adaptive", "target_trial_steps": 5, "step_budget": 50}, {}, 500),
        ({"name": "sync_halving", "target_trial_steps": 5, "step_budget": 50, "num_rungs": 2}, {}, 500),
    ],
)
def test_steps_become_batches(older: dict[str, Any], fields: dict[str, Any], batches: int) -> None:
    loaded = load(older, **fields)
    assert loaded.searcher.max_length.model_dump() == {"batches": batches}
    if "step_budget" in older:
        assert loaded.model_dump(mode="json")["searcher"]["budget"] == {"batches": batches * 10}


def test_steps_of_a_pbt_round() -> None:
    searcher = {
        "name": "pbt",
        "population_size": 2,
        "num_rounds": 2,
        "steps_per_round": 3,
        "replace_function": {"truncate_fraction": 0.5},
        "explore_function": {"resample_probability": 0, "perturb_factor": 0},
    }
    assert load(searcher).model_dump(mode="json")["searcher"]["length_per_round"] == {"batches": 300}


def test_batches_per_step_is_the_scheduling_unit() -> None:
    loaded = load({"max_length": 5}, batches_per_step=7)
    assert loaded.scheduling_unit == 7


def test_periods_count_steps_where_steps_are_used() -> None:
    older = load({"max_steps": 5}, batches_per_step=10, min_validation_period=2, min_checkpoint_period={"batches": 5})
    assert older.min_validation_period.model_dump() == {"batches": 20}
    assert older.min_checkpoint_period.model_dump() == {"batches": 5}
    assert load({"max_length": 5}, min_validation_period=2).min_validation_period.model_dump() == {"batches": 2}


@pytest.mark.parametrize(
    ("searcher", "fields", "where"),
    [
        ({"max_steps": "5"}, {}, "searcher.max_steps"),
        ({"max_steps": 0}, {}, "searcher.max_steps"),
        ({"max_steps": 5, "max_length": 5}, {}, "searcher.max_steps"),
        ({"max_length": 5}, {"batches_per_step": 5, "scheduling_unit": 5}, "batches_per_step"),
        ({"max_length": 5}, {"batches_per_step": "5"}, "batches_per_step"),
        ({"max_length": 5}, {"batches_per_step": 0}, "batches_per_step"),
    ],
)
def test_problem_is_named_as_it_was_written(searcher: dict[str, Any], fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(searcher, **fields)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_the_callers_configuration_is_left_alone() -> None:
    config: dict[str, Any] = {"searcher": {"max_steps": 5}, "batches_per_step": 3}
    Modernised(config)
    load_config(config, local=True, fills={"searcher.metric": "m", "hyperparameters.global_batch_size": 3})
    assert config == {"searcher": {"max_steps": 5}, "batches_per_step": 3}

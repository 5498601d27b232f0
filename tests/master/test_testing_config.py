"""The configuration of one minimal loop on the cluster (``test=True``)."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.master.flow.creation import testing_config as minimal
from det_native.master.flow.jobs import target_batches
from det_native.schema.loading import load_config


def test_it_is_one_batch_without_restarts_and_keeps_no_checkpoint() -> None:
    config = load_config(
        {
            "name": "digits",
            "searcher": {"name": "random", "metric": "accuracy", "smaller_is_better": False, "max_trials": 9},
            "hyperparameters": {"global_batch_size": 8, "units": {"type": "int", "minval": 1, "maxval": 9}},
            "min_checkpoint_period": {"batches": 7},
            "checkpoint_storage": {"save_trial_best": 3},
        },
        local=True,
    )
    written = minimal(config).model_dump(mode="json")
    assert written["name"] == "[test-mode] digits"
    searcher = written["searcher"]
    assert (searcher["name"], searcher["metric"], searcher["smaller_is_better"]) == ("single", "accuracy", False)
    assert searcher["max_length"] == {"batches": 1}
    assert written["scheduling_unit"] == 1
    assert written["min_validation_period"] == {"batches": 1}
    assert written["min_checkpoint_period"] == {"batches": 0}
    assert written["max_restarts"] == 0
    assert written["checkpoint_storage"]["save_trial_best"] == 0
    assert written["checkpoint_storage"]["save_trial_latest"] == 1, "it comes into the notebook"


@pytest.mark.parametrize(("framework", "batches"), [("keras", 90), ("torch", 89)])
def test_the_batches_of_a_trial_are_those_that_its_framework_makes_of_epochs(framework: Any, batches: int) -> None:
    config = load_config(
        {
            "searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 2}},
            "hyperparameters": {"global_batch_size": 32},
            "records_per_epoch": 1437,
        },
        warn=False,
    )
    assert target_batches(config, {"global_batch_size": 32}, framework) == batches

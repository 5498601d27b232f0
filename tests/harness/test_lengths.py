"""Lengths of the configuration, in batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from det_harness.trial.lengths import in_whole_epochs, periods_for, periods_of

from det_native.errors import ConfigurationError
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import UNTOLD


def environment(batch_size: int | None = 32, **config: Any) -> TrialEnvironment:
    hparams = {} if batch_size is None else {"global_batch_size": batch_size}
    return TrialEnvironment(config=config, hparams=hparams)


def test_all_lengths_become_batches() -> None:
    periods = periods_of(
        environment(
            searcher={"max_length": {"epochs": 2}},
            records_per_epoch=1000,
            scheduling_unit=7,
            min_validation_period={"records": 320},
            min_checkpoint_period={"batches": 5},
            perform_initial_validation=True,
            checkpoint_policy="all",
        )
    )
    assert (periods.length, periods.validation_period, periods.checkpoint_period) == (62, 10, 5)
    assert (periods.scheduling_unit, periods.initial_validation, periods.policy) == (7, True, "all")


def test_a_stage_of_a_search_takes_the_place_of_the_whole_length() -> None:
    staged = replace(
        environment(
            searcher={"max_length": {"epochs": 8}}, records_per_epoch=1000, min_validation_period={"epochs": 1}
        ),
        stage={"epochs": 2},
    )
    assert periods_of(staged).length == 62
    assert in_whole_epochs(periods_of(staged), staged, 32).length == 64
    assert in_whole_epochs(periods_of(staged), staged, 32).validation_period == 32


def test_a_period_of_zero_is_off_and_one_shorter_than_a_batch_is_every_batch() -> None:
    periods = periods_of(
        environment(
            searcher={"max_length": 10}, min_validation_period={"batches": 0}, min_checkpoint_period={"records": 3}
        )
    )
    assert (periods.validation_period, periods.checkpoint_period) == (0, 1)


def test_lengths_in_batches_need_no_batch_size() -> None:
    assert periods_of(environment(None, searcher={"max_length": {"batches": 3}})).length == 3


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (environment(None, searcher={"max_length": {"epochs": 1}}), "hyperparameters.global_batch_size"),
        (environment(searcher={"max_length": {"epochs": 1}}), "records_per_epoch"),
        (environment(searcher={"max_length": {"records": 31}}), "less than one batch"),
        (
            replace(environment(searcher={"max_length": {"records": 99}}), stage={"records": 31}),
            "searcher: {'records': 31}, a stage of this search, is less than one batch",
        ),
    ],
)
def test_what_cannot_be_converted_is_named(made: TrialEnvironment, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        periods_of(made)


def test_code_that_counts_steps_of_its_own_says_how_long_it_trains() -> None:
    made = environment(batch_size=None, searcher={"max_length": {"epochs": 2}})
    assert periods_for("core", made).length == UNTOLD.units
    with pytest.raises(ConfigurationError):
        periods_for("torch", made)
    batches = environment(batch_size=None, searcher={"max_length": {"batches": 7}})
    assert periods_for("core", batches).length == 7

"""The lengths of a trial, in batches, from its configuration and hyperparameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from det_harness.trial.schedule import Periods
from det_native.errors import ConfigurationError, Problem
from det_native.frameworks import get_framework
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import UNTOLD, Length, Unit
from det_native.schema.manifests import Framework


def periods_of(environment: TrialEnvironment) -> Periods:
    """Convert every length of the configuration to batches of this trial.

    Parameters
    ----------
    environment : TrialEnvironment
        Lengths in records or epochs use the trial's global batch size, which may be a searched hyperparameter.

    Raises
    ------
    ConfigurationError
        If a length cannot be converted, or the trial's length comes to less than one batch.
    """
    config = environment.config
    searcher = config.get("searcher") or {}
    written = environment.stage or searcher.get("max_length", 100)
    length = _batches(written, "searcher.max_length", environment)
    if length < 1 and environment.stage:
        raise _problem(
            "searcher",
            f"{written}, a stage of this search, is less than one batch (of "
            f"{environment.hparams.get('global_batch_size')} records).",
            "Use a greater length, fewer rungs or a smaller hyperparameters.global_batch_size.",
        )
    if length < 1:
        raise _problem(
            "searcher.max_length",
            f"{written} is less than one batch (of {environment.hparams.get('global_batch_size')} records).",
            "Use a greater length or a smaller hyperparameters.global_batch_size.",
        )
    return Periods(
        length=length,
        scheduling_unit=int(config.get("scheduling_unit", 100)),
        validation_period=_period("min_validation_period", environment),
        checkpoint_period=_period("min_checkpoint_period", environment),
        initial_validation=bool(config.get("perform_initial_validation", False)),
        policy=config.get("checkpoint_policy", "best"),
    )


def periods_for(framework: Framework, environment: TrialEnvironment) -> Periods:
    """Return the lengths of a trial of a framework; code that counts steps of its own says how long it trains.

    Raises
    ------
    ConfigurationError
        See :func:`periods_of`.
    """
    try:
        return periods_of(environment)
    except ConfigurationError:
        if not get_framework(framework).own_steps:
            raise
        return Periods(length=UNTOLD.units)


def in_whole_epochs(periods: Periods, environment: TrialEnvironment, steps: int) -> Periods:
    """Return periods in which an epoch of the configuration is a whole number of batches.

    ``records_per_epoch`` over the batch size, truncated, is all that can be known without the data: with 100 records in
    batches of 32 an epoch would end after 3 of its 4 batches.
    """
    changed: dict[str, Any] = {field: units * steps for field, units in epochs_in(periods, environment).items()}
    return replace(periods, **changed)


def epochs_in(periods: Periods, environment: TrialEnvironment) -> dict[str, int]:
    """Return the periods that the configuration gives in epochs, by the name of the field, and that still are those."""
    config = environment.config
    known = periods_of(environment)
    written = {
        "length": environment.stage or (config.get("searcher") or {}).get("max_length"),
        "validation_period": config.get("min_validation_period"),
        "checkpoint_period": config.get("min_checkpoint_period"),
    }
    found: dict[str, int] = {}
    for field, value in written.items():
        length = Length.model_validate(value) if value else None
        unchanged = getattr(periods, field) == getattr(known, field)
        if length is not None and length.units and length.unit is Unit.EPOCHS and unchanged:
            found[field] = length.units
    return found


def length_in_whole_epochs(environment: TrialEnvironment, steps: int) -> int:
    """Return the batches of a trial whose epochs have so many."""
    return in_whole_epochs(periods_of(environment), environment, steps).length


def one_of_each() -> Periods:
    """Return the shortest whole course of a trial: one batch, one validation, one checkpoint."""
    return Periods(length=1, scheduling_unit=1, policy="none")


def _period(field: str, environment: TrialEnvironment) -> int:
    written = environment.config.get(field)
    if not written:
        return 0
    length = Length.model_validate(written)
    # A period that is on, but shorter than a batch, means every batch.
    return max(_batches(length, field, environment), 1) if length.units else 0


def _batches(written: Any, field: str, environment: TrialEnvironment) -> int:
    length = Length.model_validate(written)
    if length.unit is Unit.BATCHES:
        return length.units
    if "global_batch_size" not in environment.hparams:
        raise _problem(
            field,
            f"a length in {length.unit} needs hyperparameters.global_batch_size, which is not set.",
            "Set it to the records per batch, or give the length in batches.",
        )
    records_per_epoch = int(environment.config.get("records_per_epoch") or 0)
    if length.unit is Unit.EPOCHS and not records_per_epoch:
        raise _problem(
            field,
            "a length in epochs needs records_per_epoch, which is not set.",
            "Set records_per_epoch to the size of the training data, or give the length in batches.",
        )
    batches = length.to_batches(
        global_batch_size=environment.global_batch_size,
        records_per_epoch=records_per_epoch,
    )
    # Where a batch is larger than the data, an epoch is one batch of all of them.
    return max(batches, length.units) if length.unit is Unit.EPOCHS else batches


def _problem(field: str, what: str, remedy: str) -> ConfigurationError:
    return ConfigurationError("The lengths of this trial do not fit together:", [Problem(field, what, remedy)])

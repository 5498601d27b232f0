"""Rules between the sections of a configuration.

They work on the written form and pass over whatever is not valid by itself, so that one report can list both kinds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from det_native.errors import Problem
from det_native.schema.conditions import condition_problems
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    Leaf,
    LogHyperparameter,
    leaves,
    parse_space,
)
from det_native.schema.role_checks import role_problems
from det_native.schema.sampling import grid_problem

BATCH_SIZE = "global_batch_size"
LENGTHS = (
    ("searcher", "max_length"),
    ("searcher", "budget"),
    ("searcher", "length_per_round"),
    ("min_validation_period",),
    ("min_checkpoint_period",),
)

# What an entrypoint ends with that names a Trial class, by itself or after a launcher.
_TRIAL_CLASS = re.compile(r"[\w.]+:\w+")

# Searchers with a max_length that has a default, so that its absence is a problem of the cluster's only.
_OPEN_LENGTH = ("single", "random", "grid", "optuna")


def consistency_problems(raw: Mapping[str, Any]) -> list[Problem]:
    """Return what contradicts itself in a configuration, wherever it is to run."""
    return [
        *_epochs(raw),
        *_conditions(raw),
        *_grid(raw),
        *_batch_size(raw),
        *_horovod(raw),
        *_sharding(raw),
        *role_problems(raw),
    ]


def completeness_problems(raw: Mapping[str, Any], *, local: bool) -> list[Problem]:
    """Return what is silent in a configuration and has no default.

    Parameters
    ----------
    raw : mapping
        The written form, with all values to fill in.
    local : bool
        A run in this process needs no metric, takes 100 batches if no length is given, and needs a batch size only to
        count records and epochs.
    """
    problems: list[Problem] = []
    searcher = raw.get("searcher")
    if not local and (searcher is None or isinstance(searcher, Mapping)):
        problems += _incomplete_searcher(searcher or {})
    space = raw.get("hyperparameters")
    silent = space is None or (isinstance(space, Mapping) and space.get(BATCH_SIZE) is None)
    counted = [path for path, unit in _lengths(raw) if unit != "batches" and not counts_by_itself(raw)]
    if silent and (not local or counted):
        reason = f", but {' and '.join(counted)} cannot be counted in batches without it" if local else ""
        problems.append(
            Problem(
                f"hyperparameters.{BATCH_SIZE}",
                f"is missing{reason}.",
                "Set it to the records per batch over all slots, for example 32.",
            )
        )
    return problems


def _incomplete_searcher(searcher: Mapping[str, Any]) -> Iterator[Problem]:
    if searcher.get("metric") is None and not searcher.get("metrics"):
        yield Problem(
            "searcher.metric",
            "is missing.",
            "Name the validation metric that trials are compared by, for example val_loss.",
        )
    if searcher.get("max_length") is None and _has_open_length(searcher.get("name", "single")):
        yield Problem(
            "searcher.max_length",
            "is missing.",
            'Say how long a trial trains, for example {"epochs": 5} or {"batches": 1000}.',
        )


def _has_open_length(name: Any) -> bool:
    """Whether a searcher takes ``max_length`` from elsewhere if need be; of a misspelled one, that which was meant."""
    return bool(difflib.get_close_matches(str(name), _OPEN_LENGTH, n=1, cutoff=0.6))


def _lengths(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path in LENGTHS:
        value: Any = raw
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and len(value) == 1:
            unit, units = next(iter(value.items()))
            if units != 0:
                yield ".".join(path), unit


def counts_by_itself(raw: Mapping[str, Any]) -> bool:
    """Return whether what is trained counts its records and epochs itself: a command, or a script."""
    entrypoint = raw.get("entrypoint")
    words = entrypoint if isinstance(entrypoint, list) else str(entrypoint or "").split()
    return bool(words) and not _TRIAL_CLASS.fullmatch(str(words[-1]))


def _epochs(raw: Mapping[str, Any]) -> Iterator[Problem]:
    in_epochs = [path for path, unit in _lengths(raw) if unit == "epochs" and not counts_by_itself(raw)]
    if in_epochs and raw.get("records_per_epoch") in (None, 0):
        yield Problem(
            "records_per_epoch",
            f"is missing, but {' and '.join(in_epochs)} {'is' if len(in_epochs) == 1 else 'are'} in epochs.",
            "Set it to the number of training records, or give lengths in batches or records.",
        )


def _space(raw: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Leaf]] | None:
    space = raw.get("hyperparameters")
    if not isinstance(space, Mapping):
        return None
    try:
        return list(leaves(parse_space(space)))
    except ValidationError:
        return None


def _conditions(raw: Mapping[str, Any]) -> Iterator[Problem]:
    yield from condition_problems(_space(raw) or [])


def _grid(raw: Mapping[str, Any]) -> Iterator[Problem]:
    searcher = raw.get("searcher")
    if isinstance(searcher, Mapping) and searcher.get("name") == "grid":
        problem = grid_problem(_space(raw) or [])
        if problem is not None:
            yield problem


def _batch_size(raw: Mapping[str, Any]) -> Iterator[Problem]:
    space = raw.get("hyperparameters")
    if not isinstance(space, Mapping) or space.get(BATCH_SIZE) is None:
        return
    where = f"hyperparameters.{BATCH_SIZE}"
    try:
        found = list(leaves(parse_space({BATCH_SIZE: space[BATCH_SIZE]})))
    except ValidationError:
        return
    path, leaf = found[0]
    smallest = _smallest(leaf)
    if len(path) > 1 or smallest is None:
        yield Problem(where, "must be a number: the records per batch over all slots.", "For example 32.")
    elif smallest < 1:
        yield Problem(where, f"must be at least 1 record, but may be {smallest!r}.")
    else:
        yield from _batch_of_every_slot(raw, where, smallest)


def _batch_of_every_slot(raw: Mapping[str, Any], where: str, smallest: float) -> Iterator[Problem]:
    resources = raw.get("resources")
    resources = resources if isinstance(resources, Mapping) else {}
    slots = resources.get("slots_per_trial")
    if isinstance(slots, int) and smallest < slots and resources.get("native_parallel") is not True:
        yield Problem(
            where,
            f"({smallest!r}) must be at least resources.slots_per_trial ({slots}), since each slot needs a record.",
        )


def _smallest(leaf: Leaf) -> float | None:
    match leaf:
        case ConstHyperparameter():
            values: list[Any] = [leaf.val]
        case CategoricalHyperparameter():
            values = leaf.vals
        case LogHyperparameter():
            values = [leaf.value(leaf.minval), leaf.value(leaf.maxval)]
        case _:
            values = [leaf.minval]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return min(numbers) if len(numbers) == len(values) else None


def _section(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _one_process(raw: Mapping[str, Any], field: str, value: str, nobody: str) -> Iterator[Problem]:
    """Yield what is wrong if a field is for several processes, and the slots of a trial are those of one."""
    resources = _section(raw, "resources")
    slots = resources.get("slots_per_trial")
    if resources.get("native_parallel") is True and isinstance(slots, int) and slots > 1:
        yield Problem(
            f"distributed.{field}",
            f"is {value}, but resources.native_parallel makes one process of the slots, which {nobody}.",
            "Leave one of them out.",
        )


def _horovod(raw: Mapping[str, Any]) -> Iterator[Problem]:
    distributed = _section(raw, "distributed")
    if distributed.get("backend") != "horovod":
        return
    if distributed.get("strategy") == "fsdp":
        yield Problem(
            "distributed.backend",
            "is horovod, but with distributed.strategy: fsdp torch itself exchanges the gradients.",
            "Leave one of them out.",
        )
    yield from _one_process(raw, "backend", "horovod", "has nobody to exchange gradients with")


def _sharding(raw: Mapping[str, Any]) -> Iterator[Problem]:
    distributed, compiled = _section(raw, "distributed"), _section(raw, "optimizations").get("torch_compile")
    if distributed.get("strategy") != "fsdp":
        if isinstance(distributed.get("fsdp_layers"), list) and distributed["fsdp_layers"]:
            yield Problem("distributed.fsdp_layers", "is given, but distributed.strategy is not fsdp.", "Set that too.")
        return
    yield from _one_process(raw, "strategy", "fsdp", "has nobody to share with")
    enabled = compiled.get("enabled") is not False if isinstance(compiled, Mapping) and compiled else compiled
    if enabled is True:
        yield Problem(
            "optimizations.torch_compile",
            "is set with distributed.strategy: fsdp, but torch does not compile the call of a sharded model.",
            "Leave one out.",
        )

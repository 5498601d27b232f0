"""The configuration of an experiment that is made of another one: the changes, and what goes with the old values."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.frameworks import find_framework
from det_native.schema.hyperparameters import KINDS
from det_native.schema.manifests import Framework

# What a searcher keeps when another one takes its place: what trials are compared by, and where they begin.
_SOURCES = ("source_trial_id", "source_checkpoint_uuid")
_OF_EVERY_SEARCHER = ("metric", "smaller_is_better", "max_length", *_SOURCES, "source_optimizer")
# Sections that are replaced, not merged, once these fields change: their other fields belong to the old kind.
_KINDS = {"searcher": "name", "checkpoint_storage": "type", "data_layer": "type"}
_OF_EVERY_STORAGE = ("save_experiment_best", "save_trial_best", "save_trial_latest")
# What was said of the first one alone: whatever it came after, it has begun by now.
_NOT_INHERITED = ("after",)
#: What a fork may change for a browser that is signed in at the page: numbers and texts that run nothing and lead
#: nowhere. Variables, packages, addresses, folders and all fields to come need the token.
OPEN_TO_PAGES = frozenset(
    {
        *("name", "description", "labels", "project"),
        *("hyperparameters", "searcher", "reproducibility"),
        *("scheduling_unit", "records_per_epoch", "min_validation_period", "min_checkpoint_period"),
        *(f"resources.{name}" for name in ("slots_per_trial", "max_slots", "priority", "weight")),
    }
)


def forked_config(
    config: Mapping[str, Any], changes: Mapping[str, Any], hyperparameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a configuration with changes; it comes after other experiments only if the changes say so.

    Parameters
    ----------
    config : mapping
        Complete.
    changes : mapping
        Merged into it, section by section. What it says of hyperparameters is taken like `hyperparameters`.
    hyperparameters : mapping
        New values, or ranges, by name.

    Raises
    ------
    ArgumentError
        If a hyperparameter of another name is given.
    """
    changed = _inherited(config)
    said = dict(changes)
    values = {**_mapping(said.pop("hyperparameters", None), "hyperparameters"), **hyperparameters}
    for name, value in said.items():
        changed[name] = _merged(name, changed.get(name), value)
    known = changed.get("hyperparameters") or {}
    changed["hyperparameters"] = _with_values(known, values, "hyperparameters")
    return changed


def continued_config(
    config: Mapping[str, Any],
    hparams: Mapping[str, Any],
    checkpoint: str,
    length: Mapping[str, int],
    *,
    framework: Framework,
) -> dict[str, Any]:
    """Return the configuration of one trial that goes on from a checkpoint.

    Parameters
    ----------
    config : mapping
        Of the experiment that it continues; complete.
    hparams : mapping
        Of the trial that it continues.
    checkpoint : str
        Its uuid.
    length : mapping
        How much longer it trains: ``{"epochs": 5}``.

    Raises
    ------
    UnsupportedFeatureError
        If how long it trains stands in the program's own code.
    """
    described = find_framework(framework)
    if described is not None and described.own_length:
        raise UnsupportedFeatureError(
            "How long this experiment trains stands in its own code (context.epochs(...), TrainSpec(max_steps=...)): "
            "change it there and run it again."
        )
    searcher = config.get("searcher") or {}
    changed = _inherited(config)
    changed["hyperparameters"] = {name: {"type": "const", "val": value} for name, value in hparams.items()}
    changed["searcher"] = {
        "name": "single",
        "metric": searcher.get("metric"),
        "smaller_is_better": searcher.get("smaller_is_better", True),
        "max_length": dict(length),
        "source_checkpoint_uuid": checkpoint,
        "source_optimizer": True,
    }
    return changed


def closed_to_pages(changes: Mapping[str, Any]) -> list[str]:
    """Return the paths of those changes that a browser's session may not make."""
    paths = []
    for name, value in changes.items():
        within = isinstance(value, Mapping) and any(path.startswith(f"{name}.") for path in OPEN_TO_PAGES)
        paths += [f"{name}.{field}" for field in value] if within else [name]
    return [path for path in paths if path not in OPEN_TO_PAGES]


def _inherited(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: copy.deepcopy(value) for name, value in config.items() if name not in _NOT_INHERITED}


def _merged(name: str, before: Any, value: Any) -> Any:
    if not isinstance(before, Mapping) or not isinstance(value, Mapping):
        return copy.deepcopy(value)
    kind = _KINDS.get(name)
    if kind is not None and kind in value and value[kind] != before.get(kind):
        kept = _OF_EVERY_SEARCHER if name == "searcher" else _OF_EVERY_STORAGE
        before = {field: before[field] for field in kept if field in before}
        if name == "searcher" and value[kind] == "pbt":
            before.pop("max_length", None)
    if any(source in value for source in _SOURCES):
        before = {field: each for field, each in before.items() if field not in (*_SOURCES, "source_optimizer")}
    if _is_length(before) and _is_length(value):
        return dict(value)
    return {**before, **{field: _merged(field, before.get(field), each) for field, each in value.items()}}


def _is_length(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in ("batches", "records", "epochs")


def _with_values(known: Mapping[str, Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    unknown = [name for name in values if name not in known]
    if unknown:
        has = f"it has {', '.join(map(str, known))}" if known else "it has none"
        raise ArgumentError(f"{where}.{unknown[0]}: the program has no such hyperparameter; {has}.")
    changed = dict(known)
    for name, value in values.items():
        before = known[name]
        if _is_group(before) and isinstance(value, Mapping) and value.get("type") not in KINDS:
            changed[name] = _with_values(before, value, f"{where}.{name}")
        else:
            changed[name] = copy.deepcopy(value)
    return changed


def _is_group(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") not in KINDS


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{where}: values by name are needed, not {value!r}.")
    return dict(value)

"""From what a user writes to an ``ExperimentConfig``: one call, one error with everything that is wrong."""

from __future__ import annotations

import copy
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import ValidationError

from det_native.errors import ConfigurationError, Problem
from det_native.frameworks import find_framework
from det_native.schema.checks import BATCH_SIZE, completeness_problems, consistency_problems
from det_native.schema.config import ExperimentConfig
from det_native.schema.effects import fields_without_effect, refuse_unsupported, unsearched_ranges
from det_native.schema.hyperparameter_checks import doubtful_exponents, repeated_values, unmeant_problems
from det_native.schema.lengths import Length
from det_native.schema.manifests import Framework
from det_native.schema.older_names import Modernised
from det_native.schema.problems import broken_fields, field_problems
from det_native.schema.reading import plain_mapping, read
from det_native.schema.searcher import searcher_name

# No argument of a training call names it, so what the call fills in is a guess that contradicts nobody.
_GUESSED = "searcher.metric"


class ConfigurationWarning(UserWarning):
    """Something in the configuration does not do what its author may expect."""


def load_config(
    config: Mapping[str, Any] | str | Path | ExperimentConfig | None,
    *,
    local: bool = False,
    processes: bool = False,
    fills: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    framework: Framework | None = None,
    trains: str | list[str] | None = None,
    warn: bool = True,
) -> ExperimentConfig:
    """Read, complete and validate an experiment configuration.

    Parameters
    ----------
    config : mapping, str, Path, ExperimentConfig or None
        A dictionary, YAML text, or a path (text ending in .yaml, .yml or .json is one). None is an empty configuration.
    local : bool
        For a run without a master: metric and batch size may be missing, the length is 100 batches if there is none,
        and the run has one slot, unless there are `processes`.
    processes : bool
        Whether a local run can have a process for each slot.
    fills : mapping, optional
        What the caller says, by dotted path (``{"searcher.max_length": {"epochs": 5}}``): used where the configuration
        is silent. Where both speak and differ the configuration wins, with one warning for all such fields.
    defaults : mapping, optional
        Like `fills`, but nobody said so: where the configuration speaks there is no warning. `fills` win over them.
    framework : str, optional
        What is trained with, where that is known: some fields are without effect for one framework only.
    trains : str, optional
        The Trial class that is trained, ``"module:Class"``: ``entrypoint`` may name it.
    warn : bool
        Whether to warn about contradicting `fills`, fields without effect, and ranges that nothing searches.

    Raises
    ------
    ConfigurationError
        Listing every problem: its path, what is wrong, what would be right.
    """
    if isinstance(config, ExperimentConfig):
        config = config.model_dump(mode="json")
    reading = read(config)
    raw, unreadable = plain_mapping(reading.raw)
    modern = Modernised(raw)
    said, unsayable = plain_mapping(fills or {})
    assumed, unusable = plain_mapping(defaults or {})
    contradicted = _fill(modern.raw, said)
    _fill(modern.raw, assumed)
    found = [*reading.problems, *unreadable, *unsayable, *unusable, *modern.problems]
    described = find_framework(framework) if framework is not None else None
    own_length = described is not None and described.own_length
    loaded = _validated(modern, reading.title, found, local=local or own_length)
    notes = [_contradiction(loaded, contradicted)]
    if local and not processes and loaded.resources.slots_per_trial > 1:
        notes.append(
            f"resources.slots_per_trial: {loaded.resources.slots_per_trial} becomes 1: a local run has one slot "
            "with test=True, and where its framework trains on one."
        )
        loaded = loaded.model_copy(update={"resources": loaded.resources.model_copy(update={"slots_per_trial": 1})})
    notes.append(_no_effect(loaded, framework, local, trains))
    notes += [unsearched_ranges(loaded), repeated_values(loaded), doubtful_exponents(loaded)]
    if warn:
        for note in filter(None, notes):
            warnings.warn(note, ConfigurationWarning, stacklevel=_levels_to_the_user())
    return loaded


def names(config: Mapping[str, Any] | str | Path | ExperimentConfig | None, path: str) -> bool:
    """Return whether a configuration has a field, valid or not; True for one that cannot be read.

    Parameters
    ----------
    config : mapping, str, Path, ExperimentConfig or None
        As for :func:`load_config`.
    path : str
        Dotted: ``searcher.metric``.
    """
    if isinstance(config, ExperimentConfig):
        config = config.model_dump(mode="json")
    reading = read(config)
    if reading.problems:
        return True
    value: Any = Modernised(plain_mapping(reading.raw)[0]).raw
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value is not None


def _validated(modern: Modernised, title: str, found: list[Problem], *, local: bool) -> ExperimentConfig:
    problems = list(found)
    loaded = None
    try:
        loaded = ExperimentConfig.model_validate(modern.raw)
    except ValidationError as error:
        problems += field_problems(error, modern.written_as)
        problems += _rules_behind(error, modern)
    problems += completeness_problems(modern.raw, local=local)
    problems += [*consistency_problems(modern.raw), *unmeant_problems(modern.raw)]
    if loaded is not None and not problems:
        return loaded
    raise ConfigurationError(f"The {title} is not valid:", _without_repeats(problems))


def _rules_behind(error: ValidationError, modern: Modernised) -> list[Problem]:
    """Return what pydantic did not reach behind the problems of `error`: rules between fields of a section, and the
    fields of a section of unknown kind.

    The broken fields are left out and the rest is validated again. What then is missing or unknown is so because of
    that; and a rule that names a field left out says nothing.
    """
    rest = copy.deepcopy(modern.raw)
    removed = broken_fields(error)
    for path in removed:
        _remove(rest, path)
    try:
        ExperimentConfig.model_validate(rest)
    except ValidationError as second:
        names = "|".join(re.escape(str(path[-1])) for path in removed)
        return [
            problem
            for problem in field_problems(second, modern.written_as, consequences=False)
            if not re.search(rf"\b({names})\b", problem.what)
        ]
    return []


def _remove(raw: dict[str, Any], path: list[str | int]) -> None:
    owner: Any = raw
    for step in path[:-1]:
        owner = owner.get(step) if isinstance(owner, dict) else None
    # Entries of lists stay: removing one would move the others.
    if isinstance(owner, dict):
        owner.pop(path[-1], None)


def _without_repeats(problems: list[Problem]) -> list[Problem]:
    kept: dict[str, Problem] = {}
    for problem in problems:
        repeated = problem.where in kept and ("is missing" in problem.what or problem.what == kept[problem.where].what)
        if not repeated:
            kept[problem.where if problem.where not in kept else f"{problem.where}\0{problem.what}"] = problem
    return list(kept.values())


def _fill(raw: dict[str, Any], fills: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Put values where the configuration is silent; return those where it is not, with both values."""
    spoken = {}
    for path, value in fills.items():
        if value is None or (path == "searcher.max_length" and searcher_name(raw.get("searcher")) == "pbt"):
            continue
        if path == _GUESSED and isinstance(raw.get("searcher"), dict) and raw["searcher"].get("metrics"):
            continue
        owner: Any = raw
        *sections, name = path.split(".")
        for section in sections:
            if owner.get(section) is None:
                owner[section] = {}
            elif isinstance(owner[section], dict):
                owner[section] = dict(owner[section])
            else:
                break
            owner = owner[section]
        else:
            if owner.get(name) is None:
                owner[name] = copy.deepcopy(value)
            elif owner[name] != value:
                spoken[path] = (owner[name], value)
    return spoken


def _contradiction(loaded: ExperimentConfig, spoken: Mapping[str, tuple[Any, Any]]) -> str:
    differing = [
        f"{path}: {_written(here)} in the configuration, {_written(there)} in the call"
        for path, (here, there) in spoken.items()
        if path != _GUESSED and not _same(loaded, here, there)
    ]
    if not differing:
        return ""
    return f"The configuration wins where it and the call differ: {'; '.join(differing)}."


def _same(loaded: ExperimentConfig, here: Any, there: Any) -> bool:
    if isinstance(here, dict) and here.get("type") == "const":
        return bool(here.get("val") == there)
    try:
        lengths = [Length.model_validate(value) for value in (here, there)]
    except ValidationError:
        return False
    batch_size = getattr(loaded.hyperparameters.get(BATCH_SIZE), "val", None)
    if lengths[0] == lengths[1]:
        return True
    if not isinstance(batch_size, int) or loaded.records_per_epoch == 0:
        return False
    batches = {
        length.to_batches(global_batch_size=batch_size, records_per_epoch=loaded.records_per_epoch)
        for length in lengths
    }
    return len(batches) == 1


def _written(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        unit, units = next(iter(value.items()))
        return f"{units} {unit}"
    return repr(value)


def _no_effect(
    loaded: ExperimentConfig, framework: Framework | None, local: bool, trains: str | list[str] | None
) -> str:
    by_reason: dict[str, list[str]] = {}
    for path, reason in fields_without_effect(loaded, framework, local=local).items():
        if path == "entrypoint" and trains is not None and _is_trained(loaded.entrypoint, trains):
            continue
        by_reason.setdefault(reason, []).append(path)
    if not by_reason:
        return ""
    groups = [f"{', '.join(paths)} ({reason})" for reason, paths in by_reason.items()]
    return f"These fields of the configuration have no effect here: {'; '.join(groups)}."


def _is_trained(entrypoint: str | list[str] | None, trains: str | list[str]) -> bool:
    """Return whether an entrypoint is what is trained, or a launcher's command with that Trial class as last word."""
    words = entrypoint.split() if isinstance(entrypoint, str) else entrypoint or []
    return entrypoint == trains or words[-1:] == [trains]


def _levels_to_the_user() -> int:
    """Return the ``stacklevel`` that shows a warning at the first caller outside this distribution."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("det_native.", "det_harness.")):
        frame = frame.f_back
        level += 1
    return level


__all__ = ["ConfigurationWarning", "load_config", "refuse_unsupported"]

"""Hyperparameters that are valid and hardly what was meant: asked of what users write, not of what is stored."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from det_native.errors import Problem
from det_native.schema.config import ExperimentConfig
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    LogHyperparameter,
    kind_of,
    leaves,
    parse_space,
)

#: No hyperparameter is larger by intent.
_LARGEST_VALUE = 1e12


def unmeant_problems(raw: Mapping[str, Any]) -> list[Problem]:
    """Return what is hardly meant of the hyperparameters of a configuration in its written form."""
    space = raw.get("hyperparameters")
    if not isinstance(space, Mapping):
        return []
    return [*_without_type(space, "hyperparameters"), *_values_for_exponents(space)]


def repeated_values(config: ExperimentConfig) -> str:
    """Return a sentence on choices that list a value twice, else ``""``."""
    found = []
    for path, leaf in leaves(config.hyperparameters):
        if isinstance(leaf, CategoricalHyperparameter):
            values = [json.dumps(value, sort_keys=True, default=repr) for value in leaf.vals]
            twice = sorted({value for value in values if values.count(value) > 1}, key=values.index)
            found += [f"hyperparameters.{'.'.join(path)} ({', '.join(twice)})"] if twice else []
    if not found:
        return ""
    return (
        f"Values stand more than once in vals of {', '.join(found)}: a search draws them as often, and a grid runs the "
        "same trial again. List each value once if that is not meant."
    )


def doubtful_exponents(config: ExperimentConfig) -> str:
    """Return sentences on bounds of exponents that may have been meant as values, else ``""``."""
    found = []
    for path, leaf in leaves(config.hyperparameters):
        if not isinstance(leaf, LogHyperparameter):
            continue
        across_one = leaf.base == 10.0 and 0.0 < leaf.minval < 1.0 < leaf.maxval
        if across_one or max(leaf.value(leaf.minval), leaf.value(leaf.maxval)) > _LARGEST_VALUE:
            what, as_values, least, most = _both_spellings(leaf)
            found.append(f"hyperparameters.{'.'.join(path)} {what} {as_values}; {least} to {most} need no change.")
    return " ".join(found)


def _without_type(space: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Yield ranges and choices that lack their type: they would be groups of constants of these names."""
    for name, entry in space.items():
        if kind_of(entry) != "group" or not isinstance(entry, Mapping):
            continue
        fields = set(entry) - {"when"}
        if {"minval", "maxval"} <= fields <= {"minval", "maxval", "count", "base"}:
            remedy = "Write int, double, or log, whose bounds are exponents: 0.001 to 0.1 is minval -3, maxval -1."
        elif fields == {"vals"} and isinstance(entry["vals"], list):
            remedy = "Write categorical."
        else:
            yield from _without_type(entry, f"{where}.{name}")
            continue
        yield Problem(f"{where}.{name}.type", "is missing: without it this is a group of constants.", remedy)


def _values_for_exponents(space: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        found = list(leaves(parse_space(space)))
    except ValidationError:  # which is told by itself
        return
    for path, leaf in found:
        # Who says another base knows of powers.
        if isinstance(leaf, LogHyperparameter) and leaf.base == 10.0 and 0.0 < leaf.minval < leaf.maxval <= 1.0:
            what, as_values, least, most = _both_spellings(leaf)
            remedy = f"{as_values}; for {least} to {most}, type: double with minval: {least}, maxval: {most}."
            yield Problem(".".join(("hyperparameters", *path)), what, remedy)


def _both_spellings(leaf: LogHyperparameter) -> tuple[str, str, str, str]:
    """Return what the bounds mean, what to write where they are the values, and the values that they give."""
    bounds = f"{leaf.minval:g} to {leaf.maxval:g}"
    least, most = (f"{leaf.value(bound):.4g}" for bound in (leaf.minval, leaf.maxval))
    what = f"is of type log, whose bounds are exponents: {bounds} are the values {least} to {most}."
    if leaf.minval <= 0.0:  # no power
        return what, f"For {bounds} write type: double", least, most
    low, high = (f"{math.log(bound) / math.log(leaf.base):.4g}" for bound in (leaf.minval, leaf.maxval))
    return what, f"For {bounds} write minval: {low}, maxval: {high}", least, most

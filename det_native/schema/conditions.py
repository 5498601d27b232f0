"""Hyperparameters that exist only where another one has a value: ``when: {optimizer: sgd}``.

A condition names hyperparameters by their dotted paths; all that it names must have one of the values given. One that
does not exist itself has no value. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from det_native.errors import Problem
from det_native.schema.hyperparameters import CategoricalHyperparameter, ConstHyperparameter, Leaf

Path: TypeAlias = tuple[str, ...]

_NO_VALUE = object()


def is_active(leaf: Leaf, values: Mapping[Path, Any]) -> bool:
    """Return whether a hyperparameter exists beside the values of others, by path."""
    return leaf.when is None or all(
        _is_one_of(values.get(_path(name), _NO_VALUE), wanted) for name, wanted in leaf.when.items()
    )


def in_order(found: Iterable[tuple[Path, Leaf]]) -> list[tuple[Path, Leaf]]:
    """Return hyperparameters so that each comes after those that its condition names; else in the order given.

    Conditions that go round in a circle, which no valid configuration has, keep their places.
    """
    waiting = dict(found)
    ordered: list[tuple[Path, Leaf]] = []
    while waiting:
        ready = next((path for path, leaf in waiting.items() if not _needs(leaf) & waiting.keys() - {path}), None)
        path = next(iter(waiting)) if ready is None else ready
        ordered.append((path, waiting.pop(path)))
    return ordered


def active_values(ordered: Iterable[tuple[Path, Leaf]], values: Mapping[Path, Any]) -> dict[Path, Any]:
    """Return the values of those hyperparameters that exist beside each other.

    Parameters
    ----------
    ordered : iterable
        As :func:`in_order` returns them.
    values : mapping
        A value for each of them.
    """
    kept: dict[Path, Any] = {}
    for path, leaf in ordered:
        if is_active(leaf, kept):
            kept[path] = values[path]
    return kept


def condition_problems(found: Iterable[tuple[Path, Leaf]]) -> Iterator[Problem]:
    """Yield what is wrong with conditions: names that there are not, values that they never have, circles."""
    space = dict(found)
    names = [".".join(path) for path in space]
    for path, leaf in space.items():
        where = f"hyperparameters.{'.'.join(path)}.when"
        if leaf.when is not None and path == ("global_batch_size",):
            yield Problem(where, "is set, but every trial needs a batch size.", "Leave it out.")
        for name, wanted in (leaf.when or {}).items():
            other = space.get(_path(name))
            if other is None:
                close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
                remedy = f"Did you mean {close[0]}?" if close else f"There are {', '.join(names)}."
                yield Problem(f"{where}.{name}", f"names {name!r}, which is no hyperparameter.", remedy)
            elif not isinstance(other, CategoricalHyperparameter | ConstHyperparameter):
                what = f"names {name!r}, which is of type {other.type}: only a categorical has values to compare with."
                yield Problem(f"{where}.{name}", what)
            else:
                yield from _unknown_values(f"{where}.{name}", name, other, wanted)
    yield from _circles(space)


def _unknown_values(where: str, name: str, other: Leaf, wanted: Any) -> Iterator[Problem]:
    values = other.vals if isinstance(other, CategoricalHyperparameter) else [getattr(other, "val", None)]
    unknown = [each for each in _alternatives(wanted, values) if not any(_same(each, value) for value in values)]
    if unknown:
        has = ", ".join(map(repr, values[:10]))
        yield Problem(where, f"is {unknown[0]!r}, but {name} never has that value.", f"It has {has}.")


def _circles(space: Mapping[Path, Leaf]) -> Iterator[Problem]:
    left = dict(space)
    while ready := [path for path, leaf in left.items() if not _needs(leaf) & left.keys()]:
        for path in ready:
            del left[path]
    for path in left:
        others = sorted(".".join(need) for need in _needs(left[path]) & left.keys())
        yield Problem(
            f"hyperparameters.{'.'.join(path)}.when",
            f"goes round in a circle by {' and '.join(others)}: neither could have a value first.",
        )


def _needs(leaf: Leaf) -> set[Path]:
    return {_path(name) for name in leaf.when or {}}


def _path(name: str) -> Path:
    return tuple(name.split("."))


def _is_one_of(value: Any, wanted: Any) -> bool:
    if _same(value, wanted):
        return True
    return isinstance(wanted, list) and any(_same(value, each) for each in wanted)


def _alternatives(wanted: Any, values: Iterable[Any]) -> list[Any]:
    """Return the values that a condition gives: a list is several, unless it is itself a value."""
    if isinstance(wanted, list) and not any(_same(wanted, value) for value in values):
        return wanted
    return [wanted]


def _same(value: Any, other: Any) -> bool:
    """Return whether two values are equal; true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)

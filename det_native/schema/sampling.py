"""Values of hyperparameters: drawn at random, or the points of a grid; and the seeds of trials."""

from __future__ import annotations

import copy
import math
import random
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from det_native.errors import ConfigurationError, Problem
from det_native.schema.conditions import active_values, in_order, is_active
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    DoubleHyperparameter,
    IntHyperparameter,
    Leaf,
    LogHyperparameter,
    Space,
    leaves,
    parse_space,
)

SEED_LIMIT = 2**31
MAX_GRID_POINTS = 2_000

_SCALARS = (float, int, str, bool, type(None))
_NOT_THERE = object()
_NOT_PERTURBED = ConstHyperparameter | CategoricalHyperparameter


def sample_hyperparameters(hyperparameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Draw one value for every hyperparameter.

    Parameters
    ----------
    hyperparameters : mapping
        ``ExperimentConfig.hyperparameters``, or the written form.
    seed : int
        The same seed gives the same values; hyperparameters are drawn in sorted order of their names.

    Returns
    -------
    dict
        Groups of hyperparameters are dictionaries in it; those whose condition does not hold are not in it.
    """
    generator = _seeded(seed)
    space = parse_space(hyperparameters)
    # A value is drawn for those too that do not exist then: so a condition changes no value of the others.
    return _existing(space, {path: _draw(leaf, generator) for path, leaf in space.all_leaves})


def explore_hyperparameters(
    hyperparameters: Mapping[str, Any],
    values: Mapping[str, Any],
    seed: int,
    *,
    resample_probability: float,
    perturb_factor: float,
) -> dict[str, Any]:
    """Change the values of a trial a little, as population-based training does with a copy of a good trial.

    Each range is drawn anew with `resample_probability`; otherwise its value is multiplied by ``1 + perturb_factor`` or
    ``1 - perturb_factor``, and stays within the range. Whole numbers are rounded away from the old value. Constants and
    categories stay, where they are not drawn anew.

    Parameters
    ----------
    hyperparameters : mapping
        ``ExperimentConfig.hyperparameters``, or the written form.
    values : mapping
        What :func:`sample_hyperparameters` gave, or this function.
    seed : int
        The same seed gives the same values.
    resample_probability, perturb_factor : float
        0 to 1.
    """
    generator = _seeded(seed)
    space = parse_space(hyperparameters)
    explored = {
        path: _explored(leaf, _at(values, path), generator, resample_probability, perturb_factor)
        for path, leaf in space.all_leaves
    }
    return _existing(space, explored)


def grid_points(hyperparameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every point of the grid, the first name (sorted) varying slowest.

    ``int`` takes `count` rounded points of its range (never more than the range has), ``double`` and ``log`` evenly
    spaced ones, in the exponent for ``log``; a count of 1 is the middle. ``categorical`` takes all of its values. One
    with a condition has its values only in the points in which that holds.

    Raises
    ------
    ConfigurationError
        If a range has no count, or the grid has more than 2 000 points.
    """
    found = list(leaves(parse_space(hyperparameters)))
    problem = grid_problem(found)
    if problem is not None:
        raise ConfigurationError("This is not a grid that can be searched:", [problem])
    return [nested_values((path, point[path]) for path, _ in found if path in point) for point in _points(found)]


def first_hyperparameters(hyperparameters: Mapping[str, Any], searcher: str, seed: int) -> dict[str, Any]:
    """Return the hyperparameters of a search's first trial, of which `seed` is the seed.

    What is searched otherwise than by a grid begins with a sample. A grid that is none is told by its searcher.
    """
    if searcher == "grid" and grid_problem(leaves(parse_space(hyperparameters))) is None:
        return grid_points(hyperparameters)[0]
    return sample_hyperparameters(hyperparameters, seed)


def grid_problem(found: Iterable[tuple[tuple[str, ...], Leaf]]) -> Problem | None:
    """Return what keeps the hyperparameters (as ``leaves`` yields them) from being a grid, None if nothing does."""
    found = list(found)
    uncounted = [".".join(path) for path, leaf in found if _count(leaf) is None]
    if uncounted:
        return Problem(
            "hyperparameters",
            f"these have no count, which a grid search needs: {', '.join(uncounted)}.",
            "Add count: the number of points to try.",
        )
    conditional = any(leaf.when is not None for _, leaf in found)
    points = len(_points(found)) if conditional else math.prod(_count(leaf) or 1 for _, leaf in found)
    if points > MAX_GRID_POINTS:
        has = f"at least {points:,}" if conditional else f"{points:,}"
        return Problem(
            "hyperparameters",
            f"the grid has {has} points, more than the {MAX_GRID_POINTS:,} trials an experiment may have.",
            "Lower the counts, or use the random searcher with max_trials.",
        )
    return None


def trial_seeds(experiment_seed: int) -> Iterator[int]:
    """Yield the seeds of an experiment's trials, each in [0, 2**31) and none twice.

    Parameters
    ----------
    experiment_seed : int
        ``reproducibility.experiment_seed``; the same one gives the same seeds.
    """
    generator = random.Random(experiment_seed)
    seen: set[int] = set()
    while True:
        seed = generator.randrange(SEED_LIMIT)
        if seed not in seen:
            seen.add(seed)
            yield seed


class _Own(threading.local):
    """A generator for each thread."""

    def __init__(self) -> None:
        self.generator = random.Random()


_own = _Own()


def _seeded(seed: int) -> random.Random:
    """Return a generator that draws what ``random.Random(seed)`` would, until this thread asks for another."""
    _own.generator.seed(seed)  # a new one would be seeded twice, which takes longer than all that is drawn
    return _own.generator


def _draw(leaf: Leaf, generator: random.Random) -> Any:
    match leaf:
        case ConstHyperparameter():
            return leaf.val
        case IntHyperparameter():
            return generator.randint(leaf.minval, leaf.maxval)
        case DoubleHyperparameter():
            return _between(leaf.minval, leaf.maxval, generator.random())
        case LogHyperparameter():
            return leaf.value(_between(leaf.minval, leaf.maxval, generator.random()))
        case CategoricalHyperparameter():
            return generator.choice(leaf.vals)


def _explored(leaf: Leaf, value: Any, generator: random.Random, resample: float, factor: float) -> Any:
    chance, up = generator.random(), generator.random() < 0.5
    if chance < resample or value is _NOT_THERE:
        return _draw(leaf, generator)
    changed = value * (1 + factor if up else 1 - factor) if not isinstance(leaf, _NOT_PERTURBED) else value
    match leaf:
        case IntHyperparameter():
            whole = math.ceil(changed) if changed > value else math.floor(changed)
            return min(max(whole, leaf.minval), leaf.maxval)
        case DoubleHyperparameter():
            return min(max(changed, leaf.minval), leaf.maxval)
        case LogHyperparameter():
            return min(max(changed, leaf.value(leaf.minval)), leaf.value(leaf.maxval))
        case _:
            return value


def _at(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path, `_NOT_THERE` where its condition did not hold."""
    found: Any = values
    for name in path:
        if name not in found:
            return _NOT_THERE
        found = found[name]
    return found


def _existing(space: Space, values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Return the values of those whose conditions hold, nested."""
    if not space.has_conditions:
        return nested_values(values.items())
    kept = active_values(in_order(space.all_leaves), values)
    return nested_values((path, kept[path]) for path, _ in space.all_leaves if path in kept)


def _points(found: list[tuple[tuple[str, ...], Leaf]]) -> list[dict[tuple[str, ...], Any]]:
    """Return the points of a grid; of one that has too many, more than there may be."""
    points: list[dict[tuple[str, ...], Any]] = [{}]
    for path, leaf in in_order(found):
        points = [
            more
            for point in points
            for more in ([{**point, path: value} for value in _axis(leaf)] if is_active(leaf, point) else [point])
        ]
        if len(points) > MAX_GRID_POINTS:
            break
    return points


def _count(leaf: Leaf) -> int | None:
    match leaf:
        case ConstHyperparameter():
            return 1
        case CategoricalHyperparameter():
            return len(leaf.vals)
        case IntHyperparameter():
            return None if leaf.count is None else min(leaf.count, leaf.maxval - leaf.minval + 1)
        case _:
            return leaf.count


def _axis(leaf: Leaf) -> list[Any]:
    count = _count(leaf) or 1
    match leaf:
        case ConstHyperparameter():
            return [leaf.val]
        case CategoricalHyperparameter():
            return leaf.vals
        case IntHyperparameter():
            return _whole_steps(leaf.minval, leaf.maxval, count)
        case DoubleHyperparameter():
            return _steps(leaf.minval, leaf.maxval, count)
        case LogHyperparameter():
            return [leaf.value(exponent) for exponent in _steps(leaf.minval, leaf.maxval, count)]


def _steps(low: float, high: float, count: int) -> list[float]:
    if count == 1:
        return [_between(low, high, 0.5)]
    return [_between(low, high, index / (count - 1)) for index in range(count)]


def _whole_steps(low: int, high: int, count: int) -> list[int]:
    # In whole numbers: halves round up, and no two points of a wide range meet through rounding of floats.
    if count == 1:
        return [(low + high + 1) // 2]
    gaps = count - 1
    return [low + (2 * index * (high - low) + gaps) // (2 * gaps) for index in range(count)]


def _between(low: float, high: float, share: float) -> float:
    # Not low + share * (high - low): that difference overflows for the widest ranges.
    return min(max(low * (1 - share) + high * share, low), high)


def nested_values(values: Iterable[tuple[tuple[str, ...], Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for path, value in values:
        group = result
        for name in path[:-1]:
            group = group.setdefault(name, {})
        group[path[-1]] = value if type(value) in _SCALARS else copy.deepcopy(value)
    return result

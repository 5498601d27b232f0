"""The helpers of hyperparameters, sampling, grids, and seeds."""

from __future__ import annotations

import ast
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from configurations import ranges, spaces
from hypothesis import assume, given
from hypothesis import strategies as st

from det_native.errors import ArgumentError, ConfigurationError
from det_native.schema import helpers
from det_native.schema.helpers import Categorical, Constant, Double, Integer, Log
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    IntHyperparameter,
    Leaf,
    LogHyperparameter,
    leaves,
    parse_space,
)
from det_native.schema.loading import load_config
from det_native.schema.sampling import MAX_GRID_POINTS, grid_points, sample_hyperparameters, trial_seeds


@pytest.mark.parametrize(
    ("helper", "written"),
    [
        (Constant(5), {"type": "const", "val": 5}),
        (Integer(1, 8), {"type": "int", "minval": 1, "maxval": 8}),
        (Integer(1, 8, count=3), {"type": "int", "minval": 1, "maxval": 8, "count": 3}),
        (Double(0.1, 0.5), {"type": "double", "minval": 0.1, "maxval": 0.5}),
        (Double(0.1, 0.5, count=2), {"type": "double", "minval": 0.1, "maxval": 0.5, "count": 2}),
        (Log(-4, -1), {"type": "log", "minval": -4, "maxval": -1, "base": 10.0}),
        (Log(-4, -1, 2, count=4), {"type": "log", "minval": -4, "maxval": -1, "base": 2, "count": 4}),
        (Categorical(("a", "b")), {"type": "categorical", "vals": ["a", "b"]}),
    ],
)
def test_helpers_return_the_written_form(helper: dict[str, Any], written: dict[str, Any]) -> None:
    assert helper == written
    load_config({"hyperparameters": {"a": helper}}, local=True, warn=False)


@pytest.mark.parametrize("vals", ["relu", b"relu", {"relu": 1}, 3, None])
def test_a_choice_that_is_no_list_of_values_is_refused(vals: Any) -> None:
    with pytest.raises(ArgumentError, match="vals must be a list of the values to choose from"):
        Categorical(vals)


def test_helpers_import_the_standard_library_only() -> None:
    imports = [
        node for node in ast.walk(ast.parse(Path(helpers.__file__).read_text())) if isinstance(node, ast.ImportFrom)
    ]
    assert {node.module for node in imports} <= {"__future__", "collections.abc", "typing", "det_native.errors"}


def value_at(values: dict[str, Any], path: tuple[str, ...]) -> Any:
    for name in path:
        values = values[name]
    return values


def belongs(value: Any, leaf: Leaf) -> bool:
    match leaf:
        case ConstHyperparameter():
            return bool(value == leaf.val)
        case CategoricalHyperparameter():
            return value in leaf.vals
        case IntHyperparameter():
            return type(value) is int and leaf.minval <= value <= leaf.maxval
        case LogHyperparameter():
            low, high = sorted((leaf.value(leaf.minval), leaf.value(leaf.maxval)))
            return bool(low * (1 - 1e-12) <= value <= high * (1 + 1e-12))
        case _:
            return type(value) is float and leaf.minval <= value <= leaf.maxval


@given(spaces(), st.integers(0, 2**31 - 1))
def test_samples_lie_in_the_space_and_repeat(space: dict[str, Any], seed: int) -> None:
    sample = sample_hyperparameters(space, seed)
    found = list(leaves(parse_space(space)))
    for path, leaf in found:
        assert belongs(value_at(sample, path), leaf)
    assert sorted(sample) == sorted(space)
    assert sample == sample_hyperparameters(dict(reversed(space.items())), seed)
    assert sample == sample_hyperparameters(parse_space(space), seed)


def test_every_value_of_an_int_comes_up_bounds_included() -> None:
    space = {"a": Integer(1, 3)}
    assert {sample_hyperparameters(space, seed)["a"] for seed in range(60)} == {1, 2, 3}


def test_log_is_uniform_in_the_exponent() -> None:
    drawn = [sample_hyperparameters({"a": Log(-4, 0)}, seed)["a"] for seed in range(400)]
    assert 0.4 < sum(value < 1e-2 for value in drawn) / 400 < 0.6


def test_bare_values_are_constants() -> None:
    space = {"a": 1, "b": [1, 2], "c": "x", "d": None, "e": {}, "f": {"g": {"h": False}}}
    assert sample_hyperparameters(space, 0) == space


def test_a_sample_shares_nothing_with_the_space() -> None:
    space = {"a": [1], "b": Categorical([[2]])}
    sample = sample_hyperparameters(space, 0)
    sample["a"].append(5)
    sample["b"].append(5)
    assert sample_hyperparameters(space, 0) == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("hyperparameter", "points"),
    [
        (Integer(1, 5, count=3), [1, 3, 5]),
        (Integer(1, 4, count=3), [1, 3, 4]),
        (Integer(1, 3, count=9), [1, 2, 3]),
        (Integer(0, 10, count=1), [5]),
        (Integer(1, 2, count=1), [2]),
        (Integer(0, 10**30, count=3), [0, 5 * 10**29, 10**30]),
        (Double(0, 1, count=3), [0.0, 0.5, 1.0]),
        (Double(0, 1, count=1), [0.5]),
        (Log(-3, -1, count=3), [1e-3, 1e-2, 1e-1]),
        (Log(0, 4, 2, count=1), [4.0]),
        (Categorical(["a", None]), ["a", None]),
        (Constant([1]), [[1]]),
        (7, [7]),
    ],
)
def test_axis_of_a_grid(hyperparameter: Any, points: list[Any]) -> None:
    found = [point["a"] for point in grid_points({"a": hyperparameter})]
    assert found == pytest.approx(points) if isinstance(points[0], float) else found == points


def test_the_first_name_varies_slowest() -> None:
    space = {"b": {"y": Categorical([1, 2])}, "a": Integer(1, 2, count=2), "c": 0}
    assert grid_points(space) == [
        {"a": 1, "b": {"y": 1}, "c": 0},
        {"a": 1, "b": {"y": 2}, "c": 0},
        {"a": 2, "b": {"y": 1}, "c": 0},
        {"a": 2, "b": {"y": 2}, "c": 0},
    ]


@given(spaces(counted=True))
def test_grid_is_the_product_of_its_axes(space: dict[str, Any]) -> None:
    found = list(leaves(parse_space(space)))
    sizes = [len({repr(value_at(point, path)) for point in grid_points({**_only(space, path)})}) for path, _ in found]
    counts = [len(grid_points(_only(space, path))) for path, _ in found]
    assume(math.prod(counts) <= MAX_GRID_POINTS)
    points = grid_points(space)
    assert len(points) == math.prod(counts)
    assert all(size <= count for size, count in zip(sizes, counts, strict=True))
    for point in points:
        assert all(belongs(value_at(point, path), leaf) for path, leaf in found)


def _only(space: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    entry: Any = space
    for name in path:
        entry = entry[name]
    for name in reversed(path):
        entry = {name: entry}
    return dict(entry)


@given(ranges(counted=True))
def test_points_of_a_range_are_apart_in_order_and_reach_both_ends(written: dict[str, Any]) -> None:
    points = [point["a"] for point in grid_points({"a": written})]
    assert len(set(points)) == len(points) or written["type"] != "int"
    assert points == sorted(points, reverse=written.get("base", 10) < 1)
    if written["type"] != "log" and len(points) > 1:
        assert (points[0], points[-1]) == (written["minval"], written["maxval"])


def test_grid_that_cannot_be_searched_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no count, which a grid search needs: a, g\.b\."):
        grid_points({"g": {"b": Double(0, 1)}, "a": Integer(1, 2), "c": Integer(1, 2, count=2)})
    with pytest.raises(ConfigurationError, match=r"2,001 points, more than the 2,000"):
        grid_points({"a": Integer(0, 3000, count=2001)})
    assert len(grid_points({"a": Integer(0, 3000, count=2000)})) == 2000


@given(st.integers(0, 2**31 - 1))
def test_trial_seeds_repeat_and_differ(seed: int) -> None:
    first = list(itertools.islice(trial_seeds(seed), 50))
    assert first == list(itertools.islice(trial_seeds(seed), 50))
    assert len(set(first)) == 50
    assert all(0 <= found < 2**31 for found in first)

"""What is compared of a notebook's three runs: every last digit, type and key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from notebook_run import Written
from same_values import difference, expressions, plain_value, read_values, write_values


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"loss": [0.5, 0.25]}, {"loss": [0.5, 0.26]}, "['loss'][1]: 0.25 and 0.26"),
        ({"loss": [], "mae": []}, {"mae": [], "loss": []}, " keys: ['loss', 'mae'] and ['mae', 'loss']"),
        ([1, 2], [1], " length: 2 and 1"),
        (1, 1.0, ": int 1 and float 1.0"),
        (0.5, np.float32(0.5), ": float 0.5 and float32 0.5"),
        (np.zeros((2, 2)), np.array([[0.0, 0.0], [0.5, 1.0]]), "[1, 0]: 0.0 and 0.5 (2 of 4)"),
        (np.zeros(2), np.zeros(2, "float32"), ": float64[2] and float32[2]"),
        (np.array(1.0), np.array(2.0), "[0]: 1.0 and 2.0 (1 of 1)"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "[1]: 'b' and 'c' (1 of 2)"),
    ],
)
def test_the_first_difference_is_named(first: object, second: object, expected: str) -> None:
    assert difference(first, second).replace("float32 0.5", "float32 0.5") == expected
    assert difference(first, first) == ""


def test_a_last_digit_counts_unless_so_much_is_allowed() -> None:
    first, second = [1.0, np.float32([1, np.nan])], [1.0 + 1e-15, np.float32([1, np.nan]) + np.float32(1e-6)]
    assert difference(first, second).startswith("[0]: 1.0 and 1.000000000000001")
    assert difference(first[1:], second[1:]).startswith("[0][0]: 1.0 and 1.00000")
    assert difference(first, second, within=1e-5) == ""
    assert difference(first, [1.1, first[1]], within=1e-5) == "[0]: 1.0 and 1.1"


def test_values_are_copies_without_their_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weights = np.zeros(3)
    kept = plain_value([weights])
    weights += 1
    write_values(a=(weights, {"x": None}), table=pd.DataFrame({"x": [1, 2]}))
    assert kept[0].sum() == 0
    assert difference(read_values(tmp_path), {"a": [np.ones(3), {"x": None}], "table": {"x": [1, 2]}}) == ""
    with pytest.raises(TypeError, match="cannot compare a object"):
        plain_value(object())


def test_a_notebook_names_its_values(tmp_path: Path) -> None:
    assert expressions("f(a, [b, c]), d['x, y']") == ["f(a, [b, c])", "d['x, y']"]
    path = tmp_path / "n.py"
    lines = [
        "# Title.",
        "# same: a, b(c, d)",
        "# same: e",
        "# plain: within 1e-5, since x",
        "# %%",
        "# same: f",
    ]
    path.write_text("\n".join(lines))
    written = Written.read(path)
    assert (written.same, written.within) == (["a", "b(c, d)", "e"], 1e-5)

"""What of a validation is recorded: numbers as they are, anything else as JSON, up to a size; the rest is said once."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from det_harness.trial.side_metrics import SideMetrics, UnrecordableError, recordable, reduced

from det_native.pytorch import Reducer
from det_native.schema.rest import LONGEST_VALUE, LONGEST_VALUES


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.ones((1, 1)), 1.0),
        (-math.inf, -math.inf),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([True, False]), [True, False]),
        ("größer \x00", "größer \x00"),
        (b"text", "text"),
        ((1, (2.5, None)), [1, [2.5, None]]),
        ({"a": np.float64(0.5), 3: np.arange(2), np.int64(4): "x"}, {"a": 0.5, "3": [0, 1], "4": "x"}),
        ([], []),
        (2**70, float(2**70)),
        ([2**70], [2**70]),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_values_are_recorded_as_json_has_them(value: Any, recorded: Any) -> None:
    assert recordable(value) == recorded
    assert json.loads(json.dumps(recordable(value))) == recorded


def test_not_a_number_stays_one_wherever_it_stands() -> None:
    assert math.isnan(recordable(float("nan")))
    assert math.isnan(recordable({"a": [np.nan]})["a"][0])


def cycle() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "there is no value to record"),
        ({1, 2}, "JSON has nothing like set"),
        ([Decimal(1)], "JSON has nothing like Decimal"),
        (object(), "JSON has nothing like object"),
        (1j, "JSON has nothing like complex"),
        (np.ones(2) * 1j, "JSON has nothing like complex"),
        (b"\xff", "bytes that are no text"),
        ("\ud800", "no valid Unicode"),
        ({(1, 2): 3}, "a key of type tuple"),
        (cycle(), "nested more than 20 levels"),
        (np.zeros(LONGEST_VALUE), "more than 32,768 characters"),
        ([0.5] * LONGEST_VALUE, "more than 32,768 characters"),
        ("x" * LONGEST_VALUE, "as JSON it has 32,770 characters, and at most 32,768 are recorded"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_recorded_is_told_with_the_reason(value: Any, why: str) -> None:
    with pytest.raises(UnrecordableError, match=why):
        recordable(value)


def test_what_is_left_out_is_said_once_for_each_metric(caplog: pytest.LogCaptureFixture) -> None:
    side = SideMetrics()
    for _ in range(2):
        recorded = side.recorded({"loss": 0.5, "seen": {1}, "none": None, "note": "cat"}, "evaluate()")
        assert recorded == {"loss": 0.5, "note": "cat"}
    assert [record.message for record in caplog.records] == [
        "The metric 'seen' is not recorded. evaluate() returned {1} for it: JSON has nothing like set.",
        "The metric 'none' is not recorded. evaluate() returned None for it: there is no value to record.",
    ]
    caplog.clear()
    assert SideMetrics(quiet=True).recorded({"none": None}, "evaluate()") == {}
    assert not caplog.records


def test_the_values_of_one_validation_have_a_size_together(caplog: pytest.LogCaptureFixture) -> None:
    metrics = {f"text {number}": "x" * (LONGEST_VALUE - 2) for number in range(5)}
    assert list(SideMetrics().recorded(metrics, "evaluate()")) == list(metrics)[: LONGEST_VALUES // LONGEST_VALUE]
    assert "'text 4' is not recorded" in caplog.text
    assert "more than 131,072 characters together" in caplog.text


def test_batches_are_reduced_part_by_part() -> None:
    mean = Reducer.AVG.reduce
    weights = [3, 1]
    assert reduced([1.0, 5.0], weights, mean) == 2.0
    assert reduced([[1.0, 0], [5.0, 4]], weights, mean) == [2.0, 1.0]
    assert reduced([{"a": 1.0, "b": "x"}, {"a": 5.0, "b": "x"}], weights, mean) == {"a": 2.0, "b": "x"}
    assert reduced([None, 5.0], weights, mean) == 5.0
    assert reduced(["x", "x"], weights, mean) == "x"
    assert reduced([[1.0], [5.0]], weights, Reducer.MAX.reduce) == [5.0]
    assert np.allclose(
        reduced([np.eye(2).tolist(), np.ones((2, 2)).tolist()], weights, mean),
        np.average([np.eye(2), np.ones((2, 2))], axis=0, weights=weights),
    )


@pytest.mark.parametrize("values", [["a", "b"], [[1.0], [1.0, 2.0]], [1.0, [1.0]], [{"a": 1}, {"b": 1}], [None, None]])
def test_batches_that_are_unlike_have_no_value(values: list[Any]) -> None:
    with pytest.raises(UnrecordableError):
        reduced(values, [1, 1], Reducer.AVG.reduce)

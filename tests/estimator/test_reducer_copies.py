"""A reducer of ``make_metric()`` that keeps what cannot be copied: each evaluation still begins with its own sums."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from estimator_runs import RECORDS, Run, trial

from det_native.estimator import EstimatorExperimentalContext, EstimatorTrialContext, MetricReducer
from det_native.estimator.reducers import _Fresh

pytestmark = pytest.mark.slow


class Counter:
    """A part of a reducer's, with a lock beside its number."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.number = 0


class Keeping(MetricReducer):
    """Counts records, and keeps its context, a lock and a tensor, at the top and below."""

    __slots__ = ("slotted",)

    def __init__(self, context: Any, tensor: Any) -> None:
        self.context = context
        self.lock = threading.Lock()
        self.tensor = tensor
        self.seen = {"lock": threading.Lock(), "counts": [0], "counter": Counter()}
        self.again = self.seen["counts"]
        self.array = np.zeros(2)
        self.itself = self
        self.slotted = [0]

    def accumulate(self, metric: Any) -> Any:
        with self.lock, self.seen["counter"].lock:
            self.again[0] += len(metric)
            self.seen["counter"].number += len(metric)
            self.array += len(metric)
            self.slotted[0] += len(metric)
        return self.seen["counts"][0], self.seen["counter"].number, int(self.array[0]), self.slotted[0]

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        assert len({*per_slot_metrics[0]}) == 1
        return sum(one for one, *_ in per_slot_metrics) * self.context.distributed.get_size()


def test_each_evaluation_counts_from_nothing_whatever_the_reducer_keeps(tmp_path: Path) -> None:
    kept: list[Keeping] = []

    def metrics(self: Any, labels: Any, logits: Any) -> Any:
        kept[:] = kept or [Keeping(self.context, logits)]  # the graph of the first evaluation
        return {"records": self.context.experimental.make_metric(logits, kept[0], np.float32)}

    run = Run(trial(metrics=metrics), tmp_path, batches=2, min_validation_period={"batches": 1})
    run.run()
    assert [row["records"] for row in run.validations] == [RECORDS, RECORDS]
    assert kept[0].seen["counts"] == [0]


def test_a_copy_shares_what_cannot_be_copied_and_nothing_else() -> None:
    context = EstimatorTrialContext.from_config({})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        reducer = Keeping(context, tf.constant([1.0]))
        reducer.session = session  # type: ignore[attr-defined]
        made = _Fresh().of(reducer)
    for name in ("context", "lock", "tensor", "session"):
        assert getattr(made, name) is getattr(reducer, name)
    assert made.seen["lock"] is reducer.seen["lock"]
    assert made.again is made.seen["counts"]
    assert made.again is not reducer.again
    assert made.seen["counter"] is not reducer.seen["counter"]
    assert made.itself is made
    assert made.slotted is not reducer.slotted
    made.array += 1
    assert reducer.array.tolist() == [0, 0]


def test_a_reducer_that_says_how_it_is_copied_is_asked() -> None:
    class Own(Keeping):
        def __deepcopy__(self, memo: Any) -> Own:
            return Own("its own", None)

    made = EstimatorExperimentalContext.from_config({})
    with tf.Graph().as_default():
        made.make_metric(tf.constant([1.0]), Own("first", None), np.float32)
        assert _Fresh().of(Own("first", None)).context == "its own"

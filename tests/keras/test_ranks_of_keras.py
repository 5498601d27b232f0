"""What the ranks of a Keras trial do together between batches: here two threads, each with a model of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.model_state import metric_values
from det_harness.frameworks.keras.ranks import Ranks
from det_harness.ranks.communicator import OneProcess

pytestmark = pytest.mark.slow


class Thread(OneProcess):
    """A rank in a thread."""

    def __init__(self, rank: int, places: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size = rank, len(places)
        self._places, self._barrier = places, barrier

    def all_gather_object(self, value: Any) -> list[Any]:
        self._places[self.rank] = value
        self._barrier.wait(60)
        found = list(self._places)
        self._barrier.wait(60)
        return found

    def broadcast_object(self, value: Any) -> Any:
        return self.all_gather_object(value)[0]

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        parts = self.all_gather_object(flags)
        return lambda: [any(each) for each in zip(*parts, strict=True)]


def on_both(call: Callable[[Ranks, int], Any]) -> list[Any]:
    """Return what a function returns on each of two ranks."""
    places, barrier = [None, None], threading.Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        ranks = [Ranks(Thread(rank, places, barrier)) for rank in range(2)]
        return list(threads.map(call, ranks, range(2)))


def model_with_metrics() -> Any:
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1), tf.keras.layers.BatchNormalization()])
    model.compile("sgd", "mse", metrics=["mae", tf.keras.metrics.AUC(name="auc", num_thresholds=5)])
    return model


X = np.linspace(0, 1, 7, dtype="float32")[:, None]
Y = (X > 0.4).astype("float32")


def test_metrics_are_those_of_the_data_of_all_ranks() -> None:
    models = [model_with_metrics() for _ in range(3)]
    for model in models:
        model.set_weights(models[0].get_weights())
    parts = [slice(0, 5), slice(5, 7)]
    alone = models[2].evaluate(X, Y, verbose=0, return_dict=True)

    def merge(ranks: Ranks, rank: int) -> Any:
        model = models[rank]
        logs = model.evaluate(X[parts[rank]], Y[parts[rank]], verbose=0, return_dict=True)
        before = metric_values(model)
        found = ranks.merged(model, {**logs, "own": float(rank)})
        assert all(np.array_equal(*pair) for pair in zip(before, metric_values(model), strict=True))
        return found

    first, second = on_both(merge)
    assert first == second
    assert first == {name: pytest.approx(value, abs=1e-6) for name, value in {**alone, "own": 0.5}.items()}


def test_what_a_rank_has_seen_of_anothers_data_does_not_count() -> None:
    models = [model_with_metrics() for _ in range(2)]
    models[1].set_weights(models[0].get_weights())

    def merge(ranks: Ranks, rank: int) -> Any:
        rows = slice(0, 7 if rank == 0 else 1)
        logs = models[rank].evaluate(X[rows], Y[rows], verbose=0, return_dict=True)
        return ranks.merged(models[rank], logs, counts=rank == 0), logs

    (first, alone), (second, _) = on_both(merge)
    assert first == second == {name: pytest.approx(value, abs=1e-6) for name, value in alone.items()}


def test_ranks_agree() -> None:
    assert (
        on_both(lambda ranks, rank: (ranks.agree(rank == 1), ranks.agree(False), ranks.most(3 + rank)))
        == [(True, False, 4)] * 2
    )
    columns = [{"loss": [1.0, 2.0], "own": [1.0, None]}, {"loss": [3.0, 6.0]}]
    averaged = on_both(lambda ranks, rank: ranks.averaged(columns[rank]))
    assert averaged[0] == averaged[1] == {"loss": [2.0, 4.0], "own": [None, None]}


def test_a_validation_sees_the_first_ranks_moving_means_and_gives_them_back() -> None:
    models = [model_with_metrics() for _ in range(2)]
    for rank, model in enumerate(models):
        model.layers[1].moving_mean.assign([float(rank)])

    def swap(ranks: Ranks, rank: int) -> Any:
        moving = models[rank].layers[1].moving_mean
        own = ranks.swap_in_state(models[rank])
        inside = float(moving[0])
        ranks.swap_back_state(models[rank], own)
        return inside, float(moving[0])

    assert on_both(swap) == [(0.0, 0.0), (0.0, 1.0)]


def test_one_rank_asks_nobody() -> None:
    ranks = Ranks(OneProcess())
    model = model_with_metrics()
    assert not ranks.several
    assert ranks.agree(True)
    assert ranks.most(5) == 5
    assert ranks.swap_in_state(model) == []
    ranks.broadcast_model(model)

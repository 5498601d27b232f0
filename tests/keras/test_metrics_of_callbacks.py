"""Metrics that callbacks put into ``logs`` at the end of an epoch: recorded, and what trials are compared by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from det_native.errors import TrialDefinitionError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

X = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")
Y = X.sum(1, keepdims=True)
STEPS = 3


class Score(tf.keras.callbacks.Callback):
    """Adds a metric to each epoch, and one to what it is shown of a validation."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["score"] = float(epoch)

    def on_test_end(self, logs: Any = None) -> None:
        logs["tested"] = 1.0


def trained(metric: str, *, validates: bool = True, **config: Any) -> tuple[Any, Any]:
    searcher = {"metric": metric, "smaller_is_better": False, "name": "single", "max_length": {"epochs": 2}}
    context = det.experimental.keras.init({"searcher": searcher, **config}, local=True, show="none")
    model = context.wrap_model(tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)]))
    model.compile("sgd", "mse")
    held_out = {"validation_data": (X, Y)} if validates else {}
    history = model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=[Score()], **held_out)
    return context.experiment, history


@pytest.mark.parametrize("validates", [True, False], ids=["validation", "training only"])
def test_trials_are_compared_by_what_a_callback_adds(validates: bool) -> None:
    experiment, history = trained("score", validates=validates)
    assert experiment.best_trial.best_validation == 1.0
    assert [row["score"] for row in experiment.metrics("validation")] == [0.0, 1.0]
    assert list(history.history) == ["loss", *(["val_loss"] if validates else []), "score"], "as in plain Keras"
    assert experiment.history == history.history
    assert list(experiment.history) == list(history.history)
    assert [row["batch"] for row in experiment.metrics("training")] == [*range(1, 2 * STEPS + 1)]


def test_a_metric_of_a_callback_that_is_only_recorded_stands_in_the_epochs_last_row() -> None:
    experiment, _ = trained("val_loss")
    rows = experiment.metrics("training")
    assert {row["batch"]: row["score"] for row in rows if "score" in row} == {STEPS: 0.0, 2 * STEPS: 1.0}
    assert all("score" not in row for row in experiment.metrics("validation"))


@pytest.mark.long
def test_a_name_that_nobody_adds_is_an_error_at_the_end_of_the_first_epoch() -> None:
    with pytest.raises(TrialDefinitionError, match="is 'scores'") as caught:
        trained("scores", validates=False)
    assert "Did you mean 'score'?" in str(caught.value)
    with pytest.raises(TrialDefinitionError, match="'val_scores'"):
        trained("val_scores")


def test_what_the_model_has_itself_is_refused_at_once() -> None:
    with pytest.raises(TrialDefinitionError, match="validation metrics of Keras start with 'val_'"):
        trained("loss")


def test_a_validation_before_the_end_of_an_epoch_says_that_callbacks_add_theirs_there() -> None:
    with pytest.raises(TrialDefinitionError, match="callbacks add theirs at its end"):
        trained("score", min_validation_period={"batches": 1})

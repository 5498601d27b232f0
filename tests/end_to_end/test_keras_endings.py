"""Keras on the master: pauses, and an error in the user's callback."""

from __future__ import annotations

from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, ended, line_of
from pauses import check_that_pauses_change_nothing
from programs import KERAS_FIT
from shown_errors import assert_told, wait_while_the_second_attempt_stands

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

IN_CALLBACK = """
class Watch(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == 7:
            gate(context.get_hparam("port"))
            raise RuntimeError("seen enough")
"""


@pytest.mark.long
def test_pauses_change_nothing(keras_kernel: Kernel, keras_end: Any, keras_cluster: Cluster, gate: Gate) -> None:
    call = KERAS_FIT.replace("settings)", "settings, max_restarts=0)")
    check_that_pauses_change_nothing(keras_kernel, keras_cluster, gate, call, keras_end)


@pytest.mark.long
def test_an_error_in_a_callback(keras_kernel: Kernel, keras_cluster: Cluster, gate: Gate) -> None:
    cell = keras_kernel.run(IN_CALLBACK).number
    number = keras_kernel.submit_with(KERAS_FIT.replace("[Visit()]", "[Watch()]"), port=gate.port)
    waited = wait_while_the_second_attempt_stands(keras_kernel, gate, "RuntimeError: seen enough")
    assert_told(waited, f"Cell [{cell}], line {line_of(IN_CALLBACK, 'raise')}", "RuntimeError: seen enough")
    experiment = keras_cluster.attach(number)
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.restarts == 1
    assert trial.error is not None
    assert (trial.error.cell, trial.error.batch) == (cell, 7)
    hook = "This was raised in Watch.on_train_batch_end(), a callback of the training."
    assert hook in trial.error.traceback
    assert waited.text.count(hook) == 1
    assert [row["batch"] for row in experiment.trials[0].metrics()] == list(range(1, 7))

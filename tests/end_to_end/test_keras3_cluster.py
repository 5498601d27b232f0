"""Keras 3 on the master, of the notebook's backend: a worker that is killed, and random numbers of a cell."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended, running_kernel
from keras_generation import only_keras_3
from programs import BATCHES, KERAS_CELLS, KERAS_FIT

from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long, only_keras_3]

# As people write it: in the notebook, for this process.
BACKEND = """
import os
os.environ["KERAS_BACKEND"] = "jax"
"""
# Unseeded: what a cell before init() draws from Keras's own stream.
NOISE = """
noise = np.array(tf.keras.random.normal((40, 6)))
x = x + noise
"""
SAID = """
class Saying(Visit):
    def on_train_begin(self, logs=None):
        print("trains with", tf.keras.backend.backend())
"""
FIT = KERAS_FIT.replace("[Visit()]", "[Saying()]")


@pytest.fixture(scope="module")
def jax_kernel(keras_cluster: Cluster) -> Iterator[Kernel]:
    """A notebook on JAX, on a master that knows nothing of it."""
    pytest.importorskip("jax")
    with running_kernel(keras_cluster, "jax", BACKEND, *KERAS_CELLS, NOISE, SAID) as kernel:
        yield kernel


def test_a_notebook_on_jax_trains_on_jax_and_a_killed_worker_changes_nothing(
    jax_kernel: Kernel, keras_cluster: Cluster, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_HOME", str(keras_cluster.home.path))
    undisturbed = keras_cluster.attach(jax_kernel.submit_with(FIT))
    ended(undisturbed, ExperimentState.COMPLETED)
    experiment = keras_cluster.attach(jax_kernel.submit_with(FIT, stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 6)  # in the middle of the second epoch
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert jax_kernel.end_of(experiment.id) == jax_kernel.end_of(undisturbed.id)
    assert "trains with jax" in str(experiment.logs())
    assert jax_kernel.value("experiment.config['environment']['environment_variables']['cpu']") == ["KERAS_BACKEND=jax"]
    assert "KERAS_BACKEND" not in os.environ

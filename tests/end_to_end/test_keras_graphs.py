"""A trial in graph mode, in a kernel and on the master: it never switches the kernel."""

from __future__ import annotations

import signal

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

TRIAL = """
class Graphs(det.keras.TFKerasTrial):
    def __init__(self, context):
        tf.compat.v1.disable_eager_execution()
        self.context = context

    def build_model(self):
        layers = [tf.keras.layers.Dense(16, "relu", input_shape=(6,)), tf.keras.layers.Dense(3)]
        model = self.context.wrap_model(tf.keras.Sequential(layers))
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.Adam(0.01), loss)
        return model

    def build_training_data_loader(self):
        rows = self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((x, y)))
        return rows.shuffle(40, seed=self.context.get_trial_seed()).batch(8)

    def build_validation_data_loader(self):
        return x, y

    def keras_callbacks(self):
        settings = self.context.get_hparams()

        class Visit(tf.keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                assert not tf.executing_eagerly()
                number = int(tf.keras.backend.get_value(self.model.optimizer.iterations)) + 1
                if str(number) in settings["stops"].split():
                    gate(settings["port"], number)

        return [Visit()]
"""
CREATE = "experiment = det.experimental.create(Graphs, configuration(hyperparameters=settings))"
LOCAL = """
here = det.experimental.create(Graphs, configuration(hyperparameters={}), local=True, show="none")
print(tf.executing_eagerly(), here.state, len(here.trials[0].metrics("training")))
"""


@pytest.mark.long
def test_it_trains_in_a_process_of_its_own_and_goes_on_after_a_kill(
    keras_kernel: Kernel, keras_cluster: Cluster, gate: Gate
) -> None:
    keras_kernel.run(TRIAL)
    local = keras_kernel.run(LOCAL).text
    assert "Graphs calls tf.compat.v1.disable_eager_execution(), which could not be undone in this process" in local
    assert "this process: local=True trains this in processes of its own" in local
    assert f"True Completed {BATCHES}" in local
    experiment = keras_cluster.attach(keras_kernel.submit_with(CREATE, stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 6)  # in the middle of the second epoch
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    # The same training, whole and interrupted, here and there.
    [weights, *_] = keras_kernel.end_of(experiment.id)
    print_here = "print([v.tobytes().hex() for v in here.trials[0].checkpoints[-1].load().get_weights()] == "
    assert "True" in keras_kernel.run(f"{print_here}{weights!r})").text

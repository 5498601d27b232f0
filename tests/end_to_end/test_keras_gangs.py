"""Keras on two slots of a master: trained, a slot killed, and continued with the same bits."""

from __future__ import annotations

import signal

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, Visitor, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, KERAS_FIT

from det_native.frameworks import has_horovod
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.long

# Says who stands at the gate with its rank, and with every epoch whether Horovod connects the slots.
RANKED = """
class VisitRanked(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        number = int(self.model.optimizer.iterations) + 1
        if str(number) in context.get_hparam("stops").split():
            gate(context.get_hparam("port"), f"{number} {context.distributed.get_rank()}")

    def on_epoch_begin(self, epoch, logs=None):
        import sys

        print("connected by horovod:", "horovod.tensorflow" in sys.modules)
"""
FIT = KERAS_FIT.replace("settings)", 'settings, resources={"slots_per_trial": 2})').replace("Visit()", "VisitRanked()")


def _both(gate: Gate) -> dict[str, Visitor]:
    return {visitor.text.split()[1]: visitor for visitor in (gate.next(), gate.next())}


def test_a_killed_slot_changes_nothing(keras_kernel: Kernel, keras_cluster: Cluster, gate: Gate) -> None:
    keras_kernel.run(RANKED)
    undisturbed = keras_cluster.attach(keras_kernel.submit_with(FIT))
    assert ended(undisturbed, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(undisturbed, BATCHES)
    said = {(line.rank, line.text) for line in undisturbed.trials[0].logs() if line.text.startswith("connected")}
    assert said == {(0, "connected by horovod: False"), (1, "connected by horovod: False")}

    experiment = keras_cluster.attach(keras_kernel.submit_with(FIT, stops="8", port=gate.port))
    visitors = _both(gate)
    checkpoint_at(experiment, 6)  # in the middle of the second epoch
    left = psutil.Process(visitors["0"].pid)
    visitors["0"].go()  # which waits for the other one's gradients
    visitors["1"].die(signal.SIGKILL)
    left.wait(timeout=PATIENCE)
    for visitor in _both(gate).values():
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    told = str(experiment.logs())
    assert "rank 1 of 2: killed by signal 9" in told
    assert "at batch 6." in told
    # The weights of the loaded checkpoint, and all metrics.
    assert keras_kernel.end_of(experiment.id) == keras_kernel.end_of(undisturbed.id)


SHARED = """
rows = np.arange(96, dtype="float32").reshape(24, 4)
context = det.experimental.keras.init({"resources": {"slots_per_trial": 2}})
dataset = context.wrap_dataset(tf.data.Dataset.from_tensor_slices((rows, rows.sum(1)))).batch(4)
model = context.wrap_model(tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)]))
model.compile(tf.keras.optimizers.SGD(0.0), "mse")
history = model.fit(dataset, epochs=2, verbose=0)
print("epochs", len(history.history["loss"]), history.trials[0].checkpoints[-1].batch)
"""


def test_a_slot_reads_its_part_of_a_dataset_that_the_notebook_has_whole(keras_kernel: Kernel) -> None:
    assert "epochs 2 6" in keras_kernel.run(f"import numpy as np\n{SHARED}").text


@pytest.mark.skipif(
    not has_horovod("tensorflow"), reason="Horovod for TensorFlow is not installed here: sh tools/horovod.sh."
)
def test_horovod_connects_them_where_it_is_asked_for(keras_kernel: Kernel) -> None:
    keras_kernel.run(RANKED)
    by = '"slots_per_trial": 2}, distributed={"backend": "horovod"})'
    changed = FIT.replace('"slots_per_trial": 2})', by).replace("wait=False", "local=True")
    told = keras_kernel.run(f"settings = {{}}\n{changed}\nprint('after', int(model.optimizer.iterations))").text
    assert told.count("connected by horovod: True") == 3
    assert f"after {BATCHES}" in told

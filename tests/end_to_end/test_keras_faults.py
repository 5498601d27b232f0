"""Keras on the master: its training, and a worker that is killed."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, KERAS_FIT

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_a_killed_worker_changes_nothing(
    keras_kernel: Kernel, keras_end: Any, keras_cluster: Cluster, gate: Gate
) -> None:
    experiment = keras_cluster.attach(keras_kernel.submit_with(KERAS_FIT, stops="2 8", port=gate.port))
    gate.next().die(signal.SIGKILL)  # before the first checkpoint
    gate.next().go()
    visitor = gate.next()
    assert visitor.text == "8"  # in the middle of the second epoch, with a checkpoint in its middle
    checkpoint_at(experiment, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 2
    assert_complete_rows(experiment, BATCHES)
    assert keras_kernel.end_of(experiment.id) == keras_end
    told = str(experiment.logs())
    assert "continues from the beginning." in told
    assert "at batch 6." in told


TRIAL = """
class Digits(det.keras.TFKerasTrial):
    def build_model(self):
        layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dropout(0.3)]
        model = self.context.wrap_model(tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)]))
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
                number = int(self.model.optimizer.iterations) + 1
                if str(number) in settings["stops"].split():
                    gate(settings["port"], number)

        return [Visit()]
"""
CREATE = "experiment = det.experimental.create(Digits, configuration(hyperparameters=settings))"


@pytest.mark.soak
def test_a_killed_trial_of_a_class_goes_on_at_the_very_batch_of_its_dataset(
    keras_kernel: Kernel, keras_cluster: Cluster, gate: Gate
) -> None:
    keras_kernel.run(TRIAL)
    undisturbed = keras_cluster.attach(keras_kernel.submit_with(CREATE))
    ended(undisturbed, ExperimentState.COMPLETED)
    experiment = keras_cluster.attach(keras_kernel.submit_with(CREATE, stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 6)  # in the middle of the second epoch
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert keras_kernel.end_of(experiment.id) == keras_kernel.end_of(undisturbed.id)


OF_KERAS = """[
    Visit(),
    tf.keras.callbacks.CSVLogger("log.csv"),
    tf.keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True),
    tf.keras.callbacks.EarlyStopping("val_loss", min_delta=9.0, patience=2, restore_best_weights=True),
]"""
FIT_WITH_CALLBACKS = KERAS_FIT.replace("[Visit()]", OF_KERAS)


# What the callbacks have written, out of the last checkpoint of an experiment.
KEPT_FILES = """
def kept_files(number):
    folder = det.attach(number).trials[0].checkpoints[-1].download(f"kept-{number}")
    best = tf.keras.models.load_model(f"{folder}/files/best.keras").get_weights()
    return open(f"{folder}/files/log.csv").read(), [value.tobytes().hex() for value in best]
"""


@pytest.mark.long
def test_callbacks_and_the_files_that_they_write_go_on_after_a_killed_worker(
    keras_kernel: Kernel, keras_cluster: Cluster, gate: Gate
) -> None:
    undisturbed = keras_cluster.attach(keras_kernel.submit_with(FIT_WITH_CALLBACKS))
    ended(undisturbed, ExperimentState.COMPLETED)
    experiment = keras_cluster.attach(keras_kernel.submit_with(FIT_WITH_CALLBACKS, stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 6)  # in the middle of the second epoch
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert keras_kernel.end_of(experiment.id) == keras_kernel.end_of(undisturbed.id)
    keras_kernel.run(KEPT_FILES)
    log, best = keras_kernel.value(f"kept_files({experiment.id})")
    assert [line.split(",")[0] for line in log.splitlines()] == ["epoch", "0", "1", "2"]
    assert [log, best] == keras_kernel.value(f"kept_files({undisturbed.id})")
    assert "Files that the training has written are kept with its checkpoints: best.keras, log.csv" in str(
        experiment.logs()
    )


COUNTED = """
seen, counts = [], {"steps": 0}

class Counted(tf.keras.Sequential):
    def train_step(self, data):
        counts["steps"] += 1
        return super().train_step(data)

class Noting(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(batch)
        seen.append(float(logs["loss"]))

noting = Noting()
stopping = tf.keras.callbacks.EarlyStopping("val_loss", min_delta=9.0, patience=2, restore_best_weights=True)
"""
FIT_COUNTED = (
    KERAS_FIT.replace("[Visit()]", "[Visit(), noting, stopping]")
    .replace("tf.keras.Sequential(", "Counted(")
    .replace("(0.01), loss)", "(0.01), loss, run_eagerly=True)")
)


@pytest.mark.long
def test_what_a_training_has_changed_outside_of_its_model_comes_home_once_after_a_killed_worker(
    keras_kernel: Kernel, keras_cluster: Cluster, gate: Gate
) -> None:
    keras_kernel.run(COUNTED)
    experiment = keras_cluster.attach(keras_kernel.submit_with(FIT_COUNTED, stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 6)  # in the middle of the second epoch
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    keras_kernel.run("experiment.wait()\nmodel.get_weights()")
    steps, losses, batches = keras_kernel.value("[counts['steps'], seen, noting.batches]")
    [reported] = [trial.metrics("training") for trial in experiment.trials]
    assert steps == len(losses) == len(batches) == len(reported) == BATCHES
    assert batches == [0, 1, 2, 3, 4] * (BATCHES // 5)
    assert keras_kernel.value("[stopping.best_epoch, stopping.wait, stopping.stopped_epoch, model.stop_training]") == [
        *(0, 2, 2, True),
    ]
    assert keras_kernel.value("noting.model is model and stopping.model is model")


GUESS = """
class Guess(tf.keras.Sequential):
    def train_step(self, data):
        error = tf.reduce_mean(tf.square(self(data[0])))
        return {"error": error, "step": self.optimizer.iterations}

def guess():
    np.random.seed(3)
    drawn = lambda shape, dtype: tf.constant(np.random.normal(size=shape), dtype)
    return Guess([tf.keras.layers.Dense(3, kernel_initializer=drawn)])
"""
GUESS_FIT = """
context = det.experimental.keras.init()
model = context.wrap_model(guess())
model.compile("sgd")
experiment = model.fit(x, y, batch_size=64)
"""


@pytest.mark.long
def test_on_the_cluster_too_fit_is_keras(keras_kernel: Kernel, keras_cluster: Cluster) -> None:
    keras_kernel.run(GUESS)
    cell = keras_kernel.run(GUESS_FIT)
    assert f"fit() in cell [{cell.number}], line 5: batch_size is 64, but there are only 40 records" in cell.text
    experiment = keras_cluster.attach(keras_kernel.value("experiment.id"))
    assert ended(experiment, ExperimentState.COMPLETED).batches == 1
    assert experiment.config["searcher"]["metric"] == "error"
    assert experiment.top_checkpoint().metrics.keys() == {"error", "step"}
    keras_kernel.run("plain = guess()\nplain.build(x.shape)\nloaded = experiment.top_checkpoint().load()")
    same = "print([np.array_equal(*pair) for pair in zip(loaded.get_weights(), plain.get_weights())])"
    assert keras_kernel.run(same).text.strip() == "[True, True]"

"""Trials in graph mode, trained whole and continued from checkpoints: what came of each is printed as JSON.

It has a process of its own: eager execution is switched off for good.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.keras.harness import KerasHarness
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services

from det_native.errors import DetError
from det_native.heap import roots
from det_native.keras import SequenceAdapter, TFKerasTrial
from det_native.schema.environment import Ranks, TrialEnvironment

RECORDS, BATCH = 42, 8
STEPS, EPOCHS = 6, 3
X = np.random.default_rng(1).normal(size=(RECORDS, 6)).astype("float32")
Y = X[:, :3].argmax(1)
CONFIG: dict[str, Any] = {
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": EPOCHS}},
    "records_per_epoch": RECORDS,
    "min_validation_period": {"epochs": 1},
    "min_checkpoint_period": {"batches": 4},
    "checkpoint_policy": "none",
}
LOSS = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


class Graph(TFKerasTrial):
    """Switches eager execution off where the documents say: at the top of its ``__init__``."""

    optimizer: Any = "adam"
    # Of an epoch: what makes its batches itself counts whole ones.
    records = RECORDS

    def __init__(self, context: Any) -> None:
        tf.compat.v1.disable_eager_execution()
        super().__init__(context)

    def session_config(self) -> Any:
        return tf.compat.v1.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=3)

    def build_model(self) -> Any:
        layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(5, "relu", kernel_initializer="he_normal")]
        model = self.context.wrap_model(tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)]))
        optimizer = self.optimizer() if callable(self.optimizer) else self.optimizer
        model.compile(optimizer, LOSS, metrics=["accuracy"])
        return model

    def build_training_data_loader(self) -> Any:
        return X, Y

    def build_validation_data_loader(self) -> Any:
        return X, Y

    def keras_callbacks(self) -> list[Any]:
        return [tf.keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=10.0)]


class Rows(tf.keras.utils.Sequence):
    """Batches of eight rows each: what a row of metrics says of its batch follows from that."""

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, number: int) -> Any:
        rows = np.arange(BATCH * number, BATCH * (number + 1)) % RECORDS
        return X[rows] + np.random.normal(0, 0.1, size=X[rows].shape), Y[rows]


class Weighted(Graph):
    @staticmethod
    def optimizer() -> Any:
        return tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5))

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        context.configure_fit(class_weight={0: 1.0, 1: 2.0, 2: 0.5})

    def build_training_data_loader(self) -> Any:
        return X, Y, np.linspace(0.1, 1.0, RECORDS)

    def keras_callbacks(self) -> list[Any]:
        return []


class FromDataset(Graph):
    records = STEPS * BATCH

    optimizer = staticmethod(lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9))

    def build_training_data_loader(self) -> Any:
        rows = self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((X, Y)))
        return rows.shuffle(RECORDS, seed=3).batch(BATCH)

    def build_validation_data_loader(self) -> Any:
        return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((X, Y))).batch(BATCH)


class Cached(FromDataset):
    """Records that are written once and read by every later run."""

    def build_training_data_loader(self) -> Any:
        make = self.context.experimental.cache_train_dataset("rows", "v1", shuffle=True)(rows)
        return make().map(lambda x, y: (x * 2.0, y)).batch(BATCH)

    def build_validation_data_loader(self) -> Any:
        return self.context.experimental.cache_validation_dataset("rows", "v1")(rows)().batch(BATCH)


def rows() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y))


class FromSequence(Graph):
    records = STEPS * BATCH

    def build_training_data_loader(self) -> Any:
        return Rows()

    def build_validation_data_loader(self) -> Any:
        # Several threads would draw from one stream of random numbers, in any order.
        return SequenceAdapter(Rows(), workers=1)


class Several(Graph):
    """Two named inputs and two outputs."""

    def build_model(self) -> Any:
        left, right = tf.keras.Input((2,), name="left"), tf.keras.Input((4,), name="right")
        both = tf.keras.layers.Concatenate()([left, right])
        outputs = [tf.keras.layers.Dense(3, name="kind")(both), tf.keras.layers.Dense(1, name="sum")(both)]
        model = self.context.wrap_model(tf.keras.Model([left, right], outputs))
        model.compile("rmsprop", {"kind": LOSS, "sum": "mse"}, metrics={"kind": "accuracy"})
        return model

    def build_training_data_loader(self) -> Any:
        return {"left": X[:, :2], "right": X[:, 2:]}, {"kind": Y, "sum": X.sum(1)}

    def build_validation_data_loader(self) -> Any:
        return [X[:, :2], X[:, 2:]], [Y, X.sum(1)]


class Subclassed(Graph):
    """A model that is built with its first batch."""

    def build_model(self) -> Any:
        class Own(tf.keras.Model):
            def __init__(self) -> None:
                super().__init__()
                self.dense = tf.keras.layers.Dense(3)

            def call(self, rows: Any) -> Any:
                return self.dense(rows)

        model = self.context.wrap_model(Own())
        model.compile("sgd", LOSS, metrics=["accuracy"])
        return model


class Unshuffled(Graph):
    """What plain Keras is compared with."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        context.configure_fit(shuffle=False)

    def keras_callbacks(self) -> list[Any]:
        return []


class OwnSteps(Graph):
    def build_model(self) -> Any:
        class Own(tf.keras.Sequential):
            def train_step(self, data: Any) -> Any:
                return {}

        model = self.context.wrap_model(Own([tf.keras.layers.Dense(3)]))
        model.compile("sgd", LOSS)
        return model


class Sparse(Graph):
    def build_training_data_loader(self) -> Any:
        from scipy.sparse import csr_matrix

        return csr_matrix(X), Y


class Stopping(Graph):
    """Ends itself in the middle of its second epoch."""

    def keras_callbacks(self) -> list[Any]:
        context = self.context

        class Stop(tf.keras.callbacks.Callback):
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                if int(tf.keras.backend.get_value(self.model.optimizer.iterations)) == 9:
                    context.set_stop_requested(True)

        return [Stop()]


class Dropping(Graph):
    def build_model(self) -> Any:
        model = self.context.wrap_model(tf.keras.Sequential([tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(3)]))
        model.compile("sgd", LOSS)
        return model


KINDS = {kind.__name__: kind for kind in (Graph, Weighted, FromDataset, Cached, FromSequence, Several, Subclassed)}


def train(
    trial_class: type[Graph], folder: Path, resume: int | None = None, ranks: Ranks | None = None, **optimizations: Any
) -> dict[str, Any]:
    """Train a trial and return what came of it."""
    from keras_support import Folders, Recorder  # of another folder, which the process is given

    tf.keras.backend.clear_session()
    np.random.seed(5)
    config = CONFIG | {"records_per_epoch": trial_class.records, "optimizations": optimizations}
    environment = TrialEnvironment(config, {"global_batch_size": BATCH}, trial_seed=7, ranks=ranks or Ranks())
    recorder, folders = Recorder(), Folders(folder, resume)
    services = Services(environment, Schedule(periods_of(environment)), recorder, folders, lambda: False)
    controller: Any = KerasHarness().controller(trial_class, services)
    outcome = controller.run()
    model = controller.call.model
    values = [*model.get_weights(), *tf.keras.backend.batch_get_value(model.optimizer.weights)]
    return {
        "eager": tf.executing_eagerly(),
        "controller": type(controller).__name__,
        "threads": tf.compat.v1.keras.backend.get_session()._config.inter_op_parallelism_threads,
        "optimizer": type(model.optimizer).__module__,
        "batches": outcome.batches,
        "saved": folders.saved,
        "rows": {str(batch): row for batch, row in recorder.rows.items()},
        "validations": recorder.validations,
        "history": {name: [float(value) for value in column] for name, column in outcome.result.history.items()},
        "weights": _hash(values),
        "model": _hash(model.get_weights()),
    }


def plain() -> str:
    """Train as plain Keras does, in graph mode; return a hash of the weights."""
    tf.keras.backend.clear_session()
    tf.compat.v1.set_random_seed(7)
    from det_native.keras import TFKerasTrialContext
    from det_native.keras.context import seed_keras

    seed_keras(7)
    tf.compat.v1.get_default_graph().seed = 7
    model = Unshuffled(TFKerasTrialContext(TrialEnvironment(CONFIG, {}))).build_model()
    model.fit(X, Y, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0)
    return _hash(model.get_weights())


def refusal(trial_class: type[Graph], folder: Path, **more: Any) -> str:
    """Return what is said of a trial that does not train."""
    try:
        train(trial_class, folder, **more)
    except DetError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(value).tobytes() for value in values)).hexdigest()


def main(folder: Path, kinds: list[str]) -> dict[str, Any]:
    """Train trials of the kinds, whole and continued; and, if the first kind is among them, what ends otherwise."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("det_native").addHandler(handler)
    logging.getLogger("det_native").setLevel(logging.INFO)
    found: dict[str, Any] = {}
    for name in kinds:
        whole = train(KINDS[name], folder / name)
        resumed = {batch: train(KINDS[name], folder / name, batch) for batch in (4, 12)}
        found[name] = {"whole": whole, "resumed": resumed}
    found["said"] = said
    if "Graph" not in kinds:
        return found
    found["plain"] = [train(Unshuffled, folder / "plain")["model"], plain()]
    found["stopped"] = train(Stopping, folder / "stopped")
    train(Dropping, folder / "dropping")
    found["refusals"] = {
        "steps": refusal(OwnSteps, folder / "steps"),
        "sparse": refusal(Sparse, folder / "sparse"),
        "slots": refusal(Graph, folder / "slots", ranks=Ranks(size=2)),
        "mixed": refusal(Graph, folder / "mixed", mixed_precision="O1"),
        "aggregation": refusal(Graph, folder / "aggregation", aggregation_frequency=4),
        "layers": refusal(Subclassed, folder / "Graph", resume=4),
    }
    return found


# Several trainings of this process: each goes on with what it is given.
roots.roots_of_call = lambda frame=None: ({}, [])

if __name__ == "__main__":
    Path(sys.argv[1], "found.json").write_text(json.dumps(main(Path(sys.argv[1]), sys.argv[2:])))

"""Trains cases of Keras on one rank or on several, with all services real, and keeps what came of each.

Started as ``python slots_program.py <folder> <rank> <size> <case> ...`` for one of several processes; in a test's own
process ``train()`` does the same on one slot.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.base import harness_for
from det_harness.ranks.communicator import Communicator, OneProcess
from det_harness.ranks.group import joined
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter
from two_machines import enter

from det_native.heap import roots
from det_native.keras import TFKerasNativeContext, TFKerasTrial
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.job import Gang
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

RECORDS, BATCH_SIZE, VALIDATED = 43, 8, 13
FEATURES = np.random.default_rng(3).normal(size=(RECORDS, 6)).astype("float32")
LABELS = (FEATURES[:, 0] + 0.3 * FEATURES[:, 1] > 0).astype("int64")
OTHERS = np.random.default_rng(4).normal(size=(VALIDATED, 6)).astype("float32")
TRUTHS = (OTHERS[:, 0] > 0).astype("int64")

Loss = tf.keras.losses.BinaryCrossentropy
Settings = dict[str, Any]


def model_of(context: Any, settings: Settings) -> Any:
    """Return a small model, as a case says."""
    layers: list[Any] = [tf.keras.Input((6,)), tf.keras.layers.Dense(8, "relu")]
    if settings.get("dropout"):
        layers.append(tf.keras.layers.Dropout(0.4))
    if settings.get("moving"):
        layers.append(tf.keras.layers.BatchNormalization())
    layers.append(tf.keras.layers.Dense(1, "sigmoid", dtype="float32"))
    kind = settings.get("model", tf.keras.Sequential)
    model = context.wrap_model(kind(layers))
    if settings.get("unlike") and context.distributed.get_rank():
        model.layers[0].kernel.assign_add(tf.ones_like(model.layers[0].kernel))
    optimizer = context.wrap_optimizer(settings.get("optimizer", lambda: tf.keras.optimizers.SGD(0.5))())
    metrics = ["accuracy", tf.keras.metrics.AUC(name="auc", num_thresholds=20)]
    model.compile(optimizer, Loss(), metrics=metrics, run_eagerly=settings.get("eager", False))
    return model


class OwnStep(tf.keras.Sequential):  # type: ignore[misc]
    """A model with a training step of the user's."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class Rows(tf.keras.utils.Sequence):  # type: ignore[misc]
    """Batches of so many rows."""

    def __init__(self, x: Any, y: Any, size: int) -> None:
        self._parts, self._size = (x, y), size

    def __len__(self) -> int:
        return -(-len(self._parts[0]) // self._size)

    def __getitem__(self, number: int) -> Any:
        return tuple(part[number * self._size : (number + 1) * self._size] for part in self._parts)


class Growing(Rows):
    """Eight rows at first, and four more after each time they were read."""

    def __init__(self, x: Any, y: Any, size: int) -> None:
        super().__init__(x[:8], y[:8], size)
        self._all, self._rows = (x, y), 8

    def on_epoch_end(self) -> None:
        self._rows += 4
        self._parts = tuple(part[: self._rows] for part in self._all)  # type: ignore[assignment]


def data_of(context: Any, kind: str, x: Any, y: Any) -> Any:
    """Return data of a kind."""
    size = context.get_per_slot_batch_size()
    if kind == "dataset":
        return context.wrap_dataset(tf.data.Dataset.from_tensor_slices((x, y))).batch(size)
    return Rows(x, y, size) if kind == "sequence" else (x, y)


def trial_of(settings: Settings) -> type[TFKerasTrial]:
    """Return the trial class of a case."""

    class Small(TFKerasTrial):
        def build_model(self) -> Any:
            return model_of(self.context, settings)

        def build_training_data_loader(self) -> Any:
            self.context.configure_fit(shuffle=settings.get("shuffle", True), verbose=0)
            return data_of(self.context, settings.get("data", "arrays"), FEATURES, LABELS)

        def build_validation_data_loader(self) -> Any:
            rows = settings.get("validated", VALIDATED)
            if settings.get("grows"):
                return Growing(OTHERS[:rows], TRUTHS[:rows], self.context.get_per_slot_batch_size())
            return data_of(self.context, settings.get("data", "arrays"), OTHERS[:rows], TRUTHS[:rows])

        def keras_callbacks(self) -> list[Any]:
            return [make(self.context) for make in settings.get("callbacks", ())]

    return Small


def fit_call(environment: TrialEnvironment, settings: Settings) -> Any:
    """Return a call of ``fit()`` on a generator, or on arrays that it shuffles."""

    def batches() -> Iterator[Any]:
        size = context.get_per_slot_batch_size()
        while True:
            for start in range(0, 40, size):
                yield FEATURES[start : start + size], LABELS[start : start + size]

    context = TFKerasNativeContext(environment)
    context._on_fit = lambda call: call
    model = model_of(context, settings)
    how: dict[str, Any] = {"epochs": 3, "verbose": 0, "validation_data": (OTHERS, TRUTHS)}
    if settings["data"] == "shuffled":
        return model.fit(FEATURES[:33], LABELS[:33], batch_size=BATCH_SIZE, **how)
    return model.fit(batches(), steps_per_epoch=40 // context.get_per_slot_batch_size(), **how)


class Run:
    """The runs of one trial, each from the checkpoint that it is given."""

    def __init__(self, folder: Path, communicator: Communicator, settings: Settings) -> None:
        self.communicator, self.settings = communicator, settings
        rank, size = communicator.rank, communicator.size
        self.environment = TrialEnvironment(
            config={
                "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 15}},
                "records_per_epoch": RECORDS,
                "min_validation_period": {"epochs": 1},
                "checkpoint_policy": "none",
                "resources": {"slots_per_trial": size},
                "optimizations": {},
                **settings.get("config", {}),
            },
            hparams={"global_batch_size": BATCH_SIZE},
            trial_seed=7,
            ranks=Ranks(rank, size, rank, size),
        )
        self.storage = CheckpointStorage(str(folder))
        self.folder = folder
        self.reporter = RowsReporter("val_loss")
        self.model: Any = None

    def run(self, resume: CheckpointManifest | None = None, stop_at: int | None = None) -> Any:
        """Run once; returns the checkpoint that it ended with."""
        begun: list[int] = []  # goes on with the trial, as all that callbacks change

        class Visits(tf.keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                begun.append(batch)

        settings = {**self.settings, "callbacks": [*self.settings.get("callbacks", ()), lambda context: Visits()]}
        owner = CheckpointOwner("keras", self.environment.hparams)
        checkpoints = TrialCheckpoints(self.storage, owner, self.reporter, resume=resume)
        rank = self.communicator.rank  # the last rank is asked to stop: all of them do
        services = Services(
            self.environment,
            Schedule(periods_of(self.environment)),
            self.reporter,
            checkpoints,
            lambda: stop_at is not None and rank == self.communicator.size - 1 and len(begun) >= stop_at,
            communicator=self.communicator,
        )
        tf.keras.backend.clear_session()
        rng.seed_process(self.environment.trial_seed)
        fits = self.settings.get("data") in ("generator", "shuffled")
        payload = fit_call(self.environment, self.settings) if fits else trial_of(settings)
        controller: Any = harness_for(payload).controller(payload, services)
        self.model = controller.call.model
        controller.run()
        checkpoints.wait()
        saved = [manifest for _, manifest in self.reporter.checkpoints]
        return self.communicator.broadcast_object(saved[-1] if saved else None)

    def result(self) -> dict[str, Any]:
        """Return what is compared."""
        return {
            "folder": self.folder,
            "weights": self.model.get_weights(),
            "training": [(row.batch, dict(row.metrics)) for row in self.reporter.training_rows],
            "validation": [(row.batch, dict(row.metrics)) for row in self.reporter.validation_rows],
            "manifests": [manifest for _, manifest in self.reporter.checkpoints],
            "checkpoints": [manifest.batch for _, manifest in self.reporter.checkpoints],
            "scale": float(getattr(self.model.optimizer, "loss_scale", 0.0)),
            "iterations": int(self.model.optimizer.iterations),
            "history": {name: list(values) for name, values in self.model.history.history.items()},
        }


def train(folder: Path, communicator: Communicator, name: str) -> dict[str, Any]:
    """Train a case from beginning to end, in the parts that it says."""
    settings = CASES[name]
    run, resume = Run(folder / name, communicator, settings), None
    for stop in settings.get("stops", ()):
        resume = run.run(resume, stop)
    run.run(resume)
    return run.result()


def one_slot(folder: Path, name: str) -> dict[str, Any]:
    """Train a case in this process."""
    return train(folder, OneProcess(), name)


ADAM, LEGACY = tf.keras.optimizers.Adam, tf.keras.optimizers.legacy
SCALED = getattr(tf.keras.mixed_precision, "LossScaleOptimizer", None)  # Keras 3 has it elsewhere
_UNCOUNTED = {"records_per_epoch": 0, "min_validation_period": {"batches": 6}}
_SUM_OF_TWO = {"aggregation_frequency": 2, "average_aggregated_gradients": False}
_SHORT = {"searcher": {"metric": "val_loss", "max_length": {"batches": 3}}}
_WHOLE: Settings = {"dropout": True, "moving": True, "optimizer": lambda: ADAM(0.05)}
_IN_EPOCHS = {"min_validation_period": {"batches": 4}}
CASES: dict[str, Settings] = {
    # What ends with the weights, and the metrics, of one slot.
    "plain": {},
    "sequence": {"data": "sequence", "shuffle": False, "config": _UNCOUNTED},
    "growing": {"data": "sequence", "shuffle": False, "grows": True, "config": _UNCOUNTED},
    "dataset": {"data": "dataset", "config": _UNCOUNTED},
    "generator": {"data": "generator", "config": {"optimizations": {"average_training_metrics": True}}},
    "shuffled": {"data": "shuffled", "optimizer": lambda: ADAM(0.05), "config": _UNCOUNTED},
    "adam": {"unlike": True, "optimizer": lambda: ADAM(0.05, clipnorm=0.5)},
    "legacy": {"validated": 3, "optimizer": lambda: LEGACY.SGD(0.5, momentum=0.9, clipnorm=0.5)},
    "own-step": {
        "model": OwnStep,
        "optimizer": lambda: LEGACY.SGD(0.1),
        "config": {"min_validation_period": {"batches": 4}, "optimizations": _SUM_OF_TWO},
    },
    "compressed": {"eager": True, "config": {**_SHORT, "optimizations": {"gradient_compression": True}}},
    # What ends with the same bits, however often it is stopped.
    "whole": {**_WHOLE, "config": {**_IN_EPOCHS, "optimizations": {"aggregation_frequency": 2}}},
    "whole-dataset": {**_WHOLE, "data": "dataset", "config": _IN_EPOCHS},
}
CASES["growing-parts"] = {**CASES["growing"], "stops": (8,)}
CASES["whole-mixed"] = {
    "optimizer": lambda: SCALED(tf.keras.optimizers.SGD(0.1), initial_scale=8.0, dynamic_growth_steps=3),
    "config": {"optimizations": {"mixed_precision": "O1"}},
}
CASES["once"] = {**CASES["whole"], "stops": (8,)}
for _name in ("whole", "whole-dataset", "whole-mixed"):
    CASES[_name.replace("whole", "parts")] = {**CASES[_name], "stops": (3, 11)}


def main(folder: Path, rank: int, size: int, names: list[str]) -> None:
    """Run cases one after the other."""
    gang = Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    machines = folder / "machines.json"
    if machines.exists():
        told = json.loads(machines.read_text())
        gang = Gang.model_validate(told["gangs"][rank])
        enter(*told["machines"][rank])
    with joined(gang, "keras", {"optimizations": {"tensor_fusion_cycle_time": 1}}, deadline=120.0) as communicator:
        for name in names:
            found = train(folder, communicator, name)
            (folder / f"{name}.{rank}.pkl").write_bytes(pickle.dumps(found))


# Several trainings of this process: each goes on with what it is given.
roots.roots_of_call = lambda frame=None: ({}, [])

if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])

"""Trainings of a small model for the tests of callbacks: by plain Keras, by a wrapped model, by a trial class.

A run has a working directory of its own, as on the cluster, and real checkpoints; it may begin where an earlier one was
saved.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.keras.definition import call_of
from det_harness.frameworks.keras.harness import controller_class
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Outcome, Services
from det_harness.trial.user_files import UserFiles

from det_native.keras import FitCall, TFKerasNativeContext, TFKerasTrial
from det_native.keras.context import seed_keras
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.rest import EpochRow
from det_native.storage.checkpoints import CheckpointStorage

STEPS = 5
EPOCHS = 4
SEED = 7
X = np.random.default_rng(1).normal(size=(40, 6)).astype("float32")
Y = X[:, :3].argmax(1)

Callbacks = Callable[[], list[Any]]


def make_model(rate: float = 0.0, own_seed: int | None = None) -> Any:
    """Return a compiled model with the same weights each time, with dropout if need be (not equal to plain Keras's)."""
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(SEED)
    layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dropout(rate, seed=own_seed)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)])
    compiled(model)
    return model


def compiled(model: Any) -> None:
    """Compile it as all tests do."""
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.05), loss, metrics=["accuracy"])


def fit_arguments(callbacks: list[Any], epochs: int = EPOCHS) -> dict[str, Any]:
    """Return the arguments of the one call of ``fit``."""
    given: dict[str, Any] = {"x": X, "y": Y, "batch_size": 8, "shuffle": False, "validation_data": (X, Y)}
    return {**given, "epochs": epochs, "verbose": 0, "callbacks": callbacks}


class Small(TFKerasTrial):
    """The same training as a trial class; subclasses have the callbacks."""

    rate = 0.0

    def build_model(self) -> Any:
        model = self.context.wrap_model(make_model(self.rate))
        compiled(model)
        return model

    def build_training_data_loader(self) -> Any:
        self.context.configure_fit(shuffle=False, verbose=0)
        return X, Y

    def build_validation_data_loader(self) -> Any:
        return X, Y


@dataclass
class Reports:
    """A Reporter that keeps what it is told."""

    rows: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    validations: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    checkpoints: list[CheckpointManifest] = field(default_factory=list)
    epochs: list[EpochRow] = field(default_factory=list)

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        for index, batch in enumerate(batches):
            self.rows[batch] = {name: column[index] for name, column in metrics.items()}

    def validation(self, batch: int, metrics: Mapping[str, float | None]) -> None:
        self.validations.append((batch, metrics))

    def epoch(self, row: EpochRow) -> None:
        self.epochs.append(row)

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        self.checkpoints.append(manifest)

    def waiting(self, text: str) -> None:
        raise AssertionError(text)

    def warning(self, text: str) -> None:
        raise AssertionError(text)

    def no_validation(self) -> None:
        """Whether anything validates is not looked at here."""

    def best_metric(self) -> float | None:
        return None


@dataclass
class Run:
    """One run, and all that can be seen of it."""

    work: Path
    model: Any
    reports: Reports
    schedule: Schedule
    outcome: Outcome
    callbacks: list[Any]

    def saved_at(self, batch: int) -> CheckpointManifest:
        """Return the checkpoint of a batch."""
        [found] = [one for one in self.reports.checkpoints if one.batch == batch]
        return found


class Trainings:
    """Runs of one trial, in a folder.

    Parameters
    ----------
    folder : Path
    rate : float
        Of dropout.
    own_seed : int, optional
        Of dropout, too.
    **config
        Of the experiment, beside the usual.
    """

    def __init__(self, folder: Path, rate: float = 0.0, own_seed: int | None = None, **config: Any) -> None:
        self.rate, self.own_seed = rate, own_seed
        self.folder = folder
        lengths = {"max_length": {"epochs": EPOCHS}, "metric": "val_loss"}
        self.config: dict[str, Any] = {
            "searcher": lengths,
            "records_per_epoch": 40,
            "scheduling_unit": 100,
            "min_validation_period": {"epochs": 1},
            "checkpoint_policy": "none",
            **config,
        }
        self.runs = 0

    def native(self, callbacks: Callbacks, resume: CheckpointManifest | None = None, **how: Any) -> Run:
        """Train by a call of ``fit`` of a wrapped model."""

        def call(environment: TrialEnvironment) -> FitCall:
            taken: list[FitCall] = []
            context = TFKerasNativeContext(environment, on_fit=taken.append, role="worker")
            seed_keras(environment.trial_seed)  # as init() does where the configuration has a seed
            model = context.wrap_model(make_model(self.rate, self.own_seed))
            model.fit(**fit_arguments(callbacks()))
            return taken[0]

        return self._run(call, resume, **how)

    def trial(self, callbacks: Callbacks, resume: CheckpointManifest | None = None, **how: Any) -> Run:
        """Train by a trial class."""
        kind = type("Trial", (Small,), {"keras_callbacks": lambda trial: callbacks(), "rate": self.rate})
        return self._run(lambda environment: call_of(kind, environment), resume, **how)

    def _run(self, make: Any, resume: CheckpointManifest | None, stop: Callable[[], bool] = lambda: False) -> Run:
        self.runs += 1
        work = self.folder / f"run-{self.runs}" / "work"
        work.mkdir(parents=True)
        environment = TrialEnvironment(config=self.config, hparams={"global_batch_size": 8}, trial_seed=SEED)
        reports, schedule = Reports(), Schedule(periods_of(environment))
        storage = CheckpointStorage(str(self.folder / "storage"))
        checkpoints = TrialCheckpoints(storage, CheckpointOwner("keras", {}), reports, resume=resume)
        services = Services(environment, schedule, reports, checkpoints, stop)
        services.tensorboard = self.folder / "tensorboard"
        with inside(work):
            services.files = UserFiles(work, earlier=checkpoints.earlier)
            call = make(environment)
            outcome = controller_class()(call, services).run()
        return Run(work, call.model, reports, schedule, outcome, call.callbacks())


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def plain(folder: Path, callbacks: Callbacks) -> Any:
    """Train by plain Keras; return the model."""
    with inside(folder):
        model = make_model()
        model.fit(**fit_arguments(callbacks()))
    return model


def equal(one: Any, other: Any) -> bool:
    """Return whether two models and their optimizers have bit-equal variables."""
    mine, theirs = ([each.numpy() for each in [*model.variables, *model.optimizer.variables]] for model in (one, other))
    return all(np.array_equal(*pair) for pair in zip(mine, theirs, strict=True))

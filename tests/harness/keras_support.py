"""What the tests of the Keras controller share: services in memory and on disk, digits, models."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.keras.harness import controller_class
from det_harness.trial.after_training import FOLDER
from det_harness.trial.lengths import periods_of
from det_harness.trial.rng import seed_all
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Outcome, Services

from det_native.keras import FitCall, TFKerasNativeContext
from det_native.keras.context import seed_keras
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest

SEED = 7


@dataclass
class Recorder:
    """A Reporter that keeps what it is told."""

    rows: dict[int, dict[str, float | None]] = field(default_factory=dict)
    validations: list[tuple[int, dict[str, float | None]]] = field(default_factory=list)
    best: float | None = None
    validates: bool = True

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        for index, batch in enumerate(batches):
            assert batch not in self.rows, f"batch {batch} reported twice"
            self.rows[batch] = {name: column[index] for name, column in metrics.items()}

    def validation(self, batch: int, metrics: Mapping[str, float | None]) -> None:
        self.validations.append((batch, dict(metrics)))

    def epoch(self, row: Any) -> None:
        """What callbacks see of an epoch is not looked at here."""

    def checkpoint(self, location: str, manifest: Any) -> None:
        raise AssertionError("the controller reports no checkpoints itself")

    def no_validation(self) -> None:
        self.validates = False

    def best_metric(self) -> float | None:
        return self.best


@dataclass
class Folders:
    """Checkpoints as plain folders ``<batch>`` below one; a folder appears under its name only when complete."""

    directory: Path
    resume: int | None = None
    saved: list[int] = field(default_factory=list)
    after: Callable[[int], None] | None = None
    own_metrics: dict[int | None, Any] = field(default_factory=dict)

    def save(
        self, batch: int, write: Callable[[Path], None], *, on_saved: Any = None, metadata: Any = None, **_: Any
    ) -> str:
        self.own_metrics[batch] = (metadata or {}).get(CheckpointManifest.METRICS)
        folder = self.directory / f"{batch}.partial"
        folder.mkdir(parents=True)
        write(folder)
        if on_saved is not None:
            on_saved(str(batch), folder)
        target = self.directory / str(batch)
        if target.exists():
            shutil.rmtree(target)
        folder.rename(target)
        self.saved.append(batch)
        if self.after is not None:
            self.after(batch)
        return str(batch)

    def save_end(self, write: Callable[[Path], None], metrics: Any = None) -> None:
        self.own_metrics[self.saved[-1] if self.saved else self.resume] = metrics
        after = self.directory / str(self.saved[-1] if self.saved else self.resume) / FOLDER
        shutil.rmtree(after, ignore_errors=True)
        after.mkdir()
        write(after)

    @contextmanager
    def restore(self) -> Iterator[Path | None]:
        yield None if self.resume is None else self.directory / str(self.resume)

    def wait(self) -> None:
        """Everything is written at once."""


@dataclass
class Run:
    """One run of a controller and all that can be seen of it."""

    outcome: Outcome
    recorder: Recorder
    folders: Folders
    model: Any

    @property
    def history(self) -> dict[str, list[float]]:
        return self.outcome.result.history


def environment(config: Mapping[str, Any] | None = None, **hparams: Any) -> TrialEnvironment:
    return TrialEnvironment(config=dict(config or {}), hparams=hparams, trial_seed=SEED)


def filled(call: FitCall, config: Mapping[str, Any]) -> TrialEnvironment:
    """Complete a configuration by what the call says, as loading does."""
    fills = call.configuration_fills()
    complete: dict[str, Any] = {"searcher": {}, "records_per_epoch": fills.get("records_per_epoch", 0), **config}
    complete["searcher"] = {
        "metric": fills["searcher.metric"],
        "max_length": fills["searcher.max_length"],
        **complete["searcher"],
    }
    hparams = {"global_batch_size": fills["hyperparameters.global_batch_size"], **complete.pop("hyperparameters", {})}
    return TrialEnvironment(config=complete, hparams=hparams, trial_seed=SEED)


class Session:
    """Runs calls of ``fit`` of wrapped models through the controller, the way a local run does."""

    def __init__(self, directory: Path, **config: Any) -> None:
        self.config: dict[str, Any] = {"checkpoint_policy": "none", **config}
        self.folders = Folders(directory)
        self.recorder = Recorder()
        self.runs: list[Run] = []
        self._batch_to_stop: int | None = None
        self.after_batch: Callable[[int], None] | None = None
        self.validation_batches: int | None = None
        self.warm_start: Any = None
        self.schedule: Schedule | None = None
        self._model: Any = None
        self.role: Any = "local"
        self.context = TFKerasNativeContext(environment(self.config), on_fit=self._fit, role="local")
        seed_keras(self.context.env.trial_seed)  # as init() does where the configuration has a seed

    def _fit(self, call: FitCall) -> Any:
        call.context.role, self._model = self.role, call.model
        complete = filled(call, self.config)
        self.schedule = Schedule(periods_of(complete))
        services = Services(complete, self.schedule, self.recorder, self.folders, self._stop)
        services.validation_batches = self.validation_batches
        services.warm_start = self.warm_start
        outcome = controller_class()(call, services).run()
        self.runs.append(Run(outcome, self.recorder, self.folders, call.model))
        return outcome.result

    def stop_at(self, batch: int) -> None:
        """Ask for a stop once the model has trained on so many batches."""
        self._batch_to_stop = batch

    def _stop(self) -> bool:
        if self.after_batch is not None:
            self.after_batch(int(self._model.optimizer.iterations))
        return self._batch_to_stop is not None and int(self._model.optimizer.iterations) >= self._batch_to_stop


@cache
def digits() -> tuple[Any, Any, Any, Any]:
    """Return x_train (1437, 64), y_train, x_val (360, 64), y_val of scikit-learn's digits, pixels in 0..1."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = (data.data / 16.0).astype("float32"), data.target.astype("int64")
    return x[:1437], y[:1437], x[1437:], y[1437:]


def seeded() -> None:
    """Seed everything, so that models made next have equal weights."""
    seed_all(SEED)
    tf.random.set_seed(SEED)


def make_model(*, dropout: float = 0.0, optimizer: Any = "adam", lazy: bool = False) -> Any:
    """Return an uncompiled-weights-equal MLP 64-32-10 for digits, compiled."""
    seeded()
    model = tf.keras.Sequential()
    model.add(tf.keras.layers.Dense(32, activation="relu", **({} if lazy else {"input_shape": (64,)})))
    if dropout:
        model.add(tf.keras.layers.Dropout(dropout))
    model.add(tf.keras.layers.Dense(10))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def equal_weights(one: Any, other: Any) -> bool:
    """Return whether two models, and their optimizers, have bit-equal variables."""
    pairs = list(zip(one.get_weights(), other.get_weights(), strict=True))
    mine = [variable.numpy() for variable in _variables(one.optimizer)]
    theirs = [variable.numpy() for variable in _variables(other.optimizer)]
    pairs += list(zip(mine, theirs, strict=True))
    return all(np.array_equal(a, b) for a, b in pairs)


def _variables(optimizer: Any) -> list[Any]:
    found = optimizer.variables
    return list(found() if callable(found) else found)


def close(one: dict[str, list[float]], other: dict[str, list[float]], tolerance: float = 1e-6) -> bool:
    """Return whether two histories have the same names in each and the same numbers to a tolerance."""
    return one.keys() == other.keys() and all(
        len(one[name]) == len(other[name]) and np.allclose(one[name], other[name], atol=tolerance, rtol=tolerance)
        for name in one
    )


class Halves(tf.keras.utils.Sequence):
    """Digits in batches of 64, as a Sequence."""

    def __init__(self) -> None:
        self.epochs_ended = 0

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        x, y, _, _ = digits()
        return x[index * 64 : (index + 1) * 64], y[index * 64 : (index + 1) * 64]

    def on_epoch_end(self) -> None:
        self.epochs_ended += 1


def endless() -> Any:
    sequence = Halves()
    number = 0
    while True:
        yield sequence[number % 10]
        number += 1


def dataset(records: int = 640) -> tf.data.Dataset:
    x, y, _, _ = digits()
    return tf.data.Dataset.from_tensor_slices((x[:records], y[:records])).batch(64)


def arrays(records: int = 640) -> dict[str, Any]:
    x, y, _, _ = digits()
    return {"x": x[:records], "y": y[:records]}


def validation() -> tuple[Any, Any]:
    return digits()[2:]

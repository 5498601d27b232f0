"""A small EstimatorTrial, and runs of it in this process: its graphs are built beside eager code here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.base import harness_for
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.divergence import LossWatch
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Outcome, Services
from det_harness.trial.user_files import UserFiles
from det_harness.trial.warm_start import WarmStart
from rows_reporter import RowsReporter

from det_native.estimator import EstimatorTrial
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import WarmStartSource
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

RECORDS, BATCH_SIZE = 20, 5
X = np.random.default_rng(3).normal(size=(RECORDS, 3)).astype("float32")
Y = X.argmax(1)


class Small(EstimatorTrial):
    """A custom estimator whose parts are methods, so that a test exchanges one."""

    def model_fn(self, features: Any, labels: Any, mode: str) -> Any:
        """Return the spec of a layer of three."""
        training = mode == tf.estimator.ModeKeys.TRAIN
        logits = tf.keras.layers.Dense(3, name="answer")(self.hidden(features["x"]))
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions=logits)
        loss = self.loss(labels, logits)
        step = self.optimizer().minimize(loss, tf.compat.v1.train.get_global_step()) if training else None
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=self.metrics(labels, logits))

    def hidden(self, x: Any) -> Any:
        """Return what the layer gets."""
        return x

    def loss(self, labels: Any, logits: Any) -> Any:
        """Return the loss."""
        return tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)

    def metrics(self, labels: Any, logits: Any) -> Any:
        """Return the metrics of an evaluation."""
        return {"accuracy": tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, 1))}

    def optimizer(self) -> Any:
        """Return the optimizer."""
        return self.context.wrap_optimizer(tf.compat.v1.train.AdamOptimizer(0.1))

    def build_estimator(self) -> Any:
        return tf.estimator.Estimator(self.model_fn, model_dir="estimator")

    def data(self) -> Any:
        """Return the Dataset, of single records."""
        return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({"x": X}, Y)))

    def build_train_spec(self) -> Any:
        return tf.estimator.TrainSpec(lambda: self.data().batch(BATCH_SIZE), hooks=self.hooks())

    def hooks(self) -> Any:
        """Return the hooks of the training."""
        return []

    def build_validation_spec(self) -> Any:
        return tf.estimator.EvalSpec(lambda: self.data().batch(BATCH_SIZE), steps=None)


class Run:
    """Runs of one trial, all reporting to the same; each goes on from the last checkpoint."""

    def __init__(self, trial_class: type, directory: Path, batches: int = 3, **config: Any) -> None:
        self.trial_class = trial_class
        self.directory = directory
        searcher = {"name": "single", "metric": "loss", "max_length": {"batches": batches}}
        self.environment = TrialEnvironment(
            config={"searcher": searcher, "checkpoint_policy": "none", "scheduling_unit": 4, **config},
            hparams={"global_batch_size": BATCH_SIZE},
            trial_seed=7,
        )
        self.reporter = RowsReporter("loss")
        self.warm_start: WarmStart | None = None
        self.tensorboard: Path | None = None
        self.files: UserFiles | None = None

    def begin_with(self, other: Run) -> None:
        """Begin with the weights of another run's last checkpoint."""
        source = WarmStartSource(checkpoints=str(other.directory), manifest=other.reporter.checkpoints[-1][1])
        self.warm_start = WarmStart(source)

    def run(self, stop_after: int | None = None) -> Outcome:
        """Run, at most to the batch `stop_after`."""
        found = self.reporter.checkpoints
        resume: CheckpointManifest | None = found[-1][1] if found else None
        checkpoints = TrialCheckpoints(
            CheckpointStorage(str(self.directory)), CheckpointOwner("estimator", {}), self.reporter, resume=resume
        )
        schedule = Schedule(periods_of(self.environment))

        def stop() -> bool:
            done = self.controller._hook.done if self.controller._hook is not None else 0
            return stop_after is not None and done >= stop_after

        reporter = LossWatch(self.reporter, self.environment)
        services = Services(
            self.environment,
            schedule,
            reporter,
            checkpoints,
            stop,
            tensorboard=self.tensorboard,
            files=self.files,
            warm_start=self.warm_start,
        )
        with rng.preserved():
            try:
                self.controller: Any = harness_for(self.trial_class).controller(self.trial_class, services)
                return self.controller.run()  # type: ignore[no-any-return]
            finally:
                checkpoints.wait()

    @property
    def losses(self) -> list[float | None]:
        """The training losses."""
        return [row.metrics["loss"] for row in self.reporter.training_rows]

    @property
    def validations(self) -> list[Any]:
        """The metrics of the validations."""
        return [row.metrics for row in self.reporter.validation_rows]

    @property
    def folder(self) -> Path:
        """The newest checkpoint."""
        return Path(self.reporter.checkpoints[-1][0])


def trial(**parts: Any) -> Any:
    """Return `Small` with other methods."""
    return type("Changed", (Small,), parts)

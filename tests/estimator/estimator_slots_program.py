"""Trains cases of an estimator on one rank or on several, with all services real, and keeps what came of each.

Started as ``python estimator_slots_program.py <folder> <rank> <size> <case> ...``, for one slot too: TensorFlow numbers
the operations of a graph, by which it draws first values, in another way where V1 behaviour is not switched on.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.base import harness_for, harness_of
from det_harness.ranks.communicator import Communicator
from det_harness.ranks.group import joined
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter

from det_native.estimator import EstimatorTrial, MetricReducer
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.job import Gang
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

RECORDS, BATCH_SIZE, VALIDATED, BATCHES = 24, 4, 13, 9
X = np.random.default_rng(3).normal(size=(RECORDS, 3)).astype("float32")
WORDS = np.random.default_rng(5).integers(0, 7, RECORDS)
Y = (X[:, 0] + 0.3 * X[:, 1] + 0.2 * WORDS > 0.5).astype("int64")

LEGACY, V1 = tf.keras.optimizers.legacy, tf.compat.v1.train
Settings = dict[str, Any]


class Mean(MetricReducer):
    """The mean of all predictions."""

    def __init__(self) -> None:
        self.sum, self.count = 0.0, 0

    def accumulate(self, metric: Any) -> Any:
        self.sum, self.count = self.sum + metric["p"].sum(), self.count + metric["p"].size
        return self.sum, self.count

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        sums, counts = zip(*per_slot_metrics, strict=True)
        return sum(sums) / sum(counts)


class Stops(tf.estimator.SessionRunHook):  # type: ignore[misc]
    """Requests a stop after some batches, on one rank only."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._left -= 1
        if self._left == 0:
            run_context.request_stop()


def step_of(settings: Settings, context: Any, loss: Any) -> Any:
    """Return the training operation of a case."""
    optimizer = context.wrap_optimizer(settings.get("optimizer", lambda: V1.MomentumOptimizer(0.3, 0.9))())
    counter = V1.get_or_create_global_step()
    variables = tf.compat.v1.trainable_variables()
    if isinstance(optimizer, V1.Optimizer):
        pairs = optimizer.compute_gradients(loss, variables)
        if settings.get("clips"):
            clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.5)
            pairs = list(zip(clipped, variables, strict=True))
        return optimizer.apply_gradients(pairs, global_step=counter)
    optimizer.iterations = counter
    return tf.group(*optimizer.get_updates(loss, variables))


def model_fn_of(settings: Settings, context: Any) -> Any:
    """Return the model function of a case."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        tf.compat.v1.get_variable_scope().set_use_resource(settings.get("resources", False))
        training = mode == tf.estimator.ModeKeys.TRAIN
        hidden = tf.compat.v1.layers.dense(features["x"], 5, tf.nn.relu)
        if settings.get("dropout"):
            hidden = tf.compat.v1.layers.dropout(hidden, 0.4, training=training)
        if settings.get("moving"):
            hidden = tf.compat.v1.layers.batch_normalization(hidden, momentum=0.8, training=training)
        logits = tf.compat.v1.layers.dense(hidden, 2)
        loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
        step = None
        if training:
            with tf.control_dependencies(tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS)):
                step = step_of(settings, context, loss)
        make = context.experimental.make_metric
        answers = tf.nn.softmax(logits)[:, 1]
        metrics = {
            "accuracy": tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, 1)),
            "auc": tf.compat.v1.metrics.auc(labels, answers),
            "function": make([answers, labels], lambda all_: np.hstack([p for p, _ in all_]).std(), np.float32),
            "reducer": make({"p": answers}, Mean(), np.float64),
            "labels": make(labels, lambda all_: len(np.hstack(all_)), np.int64),
        }
        if training:
            metrics = {}
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=metrics)

    return model_fn


def premade(context: Any) -> Any:
    """Return a premade estimator whose gradients are partly rows of an embedding."""
    words = tf.feature_column.categorical_column_with_identity("word", 7)
    columns = [tf.feature_column.numeric_column("x", shape=3), tf.feature_column.embedding_column(words, 3)]
    optimizer = context.wrap_optimizer(lambda: LEGACY.Adagrad(0.2))
    return tf.estimator.DNNClassifier([5], columns, "estimator", 2, optimizer=optimizer)


def trial_of(settings: Settings) -> type[EstimatorTrial]:
    """Return the trial class of a case."""

    class Small(EstimatorTrial):
        def build_estimator(self) -> Any:
            if settings.get("premade"):
                return premade(self.context)
            return tf.estimator.Estimator(model_fn_of(settings, self.context), model_dir="estimator")

        def data(self, records: int, *, shuffle: bool) -> Any:
            rows = {"x": X[:records], "word": WORDS[:records]}
            found = tf.data.Dataset.from_tensor_slices((rows, Y[:records]))
            if self.context.distributed.get_size() == 1:
                found = found.shard(1, 0)  # as many operations, by which TensorFlow numbers those of first values
            wrapped = self.context.wrap_dataset(found) if settings.get("unwrapped") != "never" else found
            found = found if "unwrapped" in settings else wrapped
            found = found.shuffle(8) if shuffle else found
            return found.batch(self.context.get_per_slot_batch_size())

        def build_train_spec(self) -> Any:
            rank, size = self.context.distributed.get_rank(), self.context.distributed.get_size()
            hooks = [Stops(settings["stops_on_last"])] if rank == size - 1 and "stops_on_last" in settings else []
            shuffle = settings.get("shuffle", False)
            return tf.estimator.TrainSpec(lambda: self.data(RECORDS, shuffle=shuffle), hooks=hooks)

        def build_validation_spec(self) -> Any:
            records = settings.get("validated", VALIDATED)
            rank, size = self.context.distributed.get_rank(), self.context.distributed.get_size()
            hooks = [Stops(1)] if rank == size - 1 and settings.get("evaluation_stops_on_last") else []
            return tf.estimator.EvalSpec(lambda: self.data(records, shuffle=False), steps=None, hooks=hooks)

    return Small


class Run:
    """The runs of one trial, each from the checkpoint that it is given."""

    def __init__(self, folder: Path, communicator: Communicator, settings: Settings) -> None:
        self.communicator, self.settings = communicator, settings
        rank, size = communicator.rank, communicator.size
        self.environment = TrialEnvironment(
            config={
                "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": BATCHES}},
                "min_validation_period": {"batches": 4},
                "checkpoint_policy": "none",
                "resources": {"slots_per_trial": size},
                "optimizations": settings.get("optimizations", {}),
            },
            hparams={"global_batch_size": BATCH_SIZE},
            trial_seed=7,
            ranks=Ranks(rank, size, rank, size),
        )
        self.folder = folder
        self.storage = CheckpointStorage(str(folder))
        self.reporter = RowsReporter("loss")

    def run(self, resume: CheckpointManifest | None = None, stop_at: int | None = None) -> Any:
        """Run once; returns the checkpoint that it ended with."""
        owner = CheckpointOwner("estimator", self.environment.hparams)
        checkpoints = TrialCheckpoints(self.storage, owner, self.reporter, resume=resume)
        rank, size = self.communicator.rank, self.communicator.size

        def stop() -> bool:  # the last rank is asked to stop: all of them do
            hook = controller._hook
            return stop_at is not None and rank == size - 1 and hook is not None and hook.done >= stop_at

        services = Services(
            self.environment,
            Schedule(periods_of(self.environment)),
            self.reporter,
            checkpoints,
            stop,
            tensorboard=self.folder / "tensorboard",
            communicator=self.communicator,
        )
        rng.seed_process(self.environment.trial_seed)
        payload = trial_of(self.settings)
        controller: Any = harness_for(payload).controller(payload, services)
        controller.run()
        checkpoints.wait()
        saved = [manifest for _, manifest in self.reporter.checkpoints]
        return self.communicator.broadcast_object(saved[-1] if saved else None)

    def result(self) -> dict[str, Any]:
        """Return what is compared."""
        weights: dict[str, Any] = {}
        if self.reporter.checkpoints:
            reader = tf.train.load_checkpoint(str(self.reporter.checkpoints[-1][0]))
            weights = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        return {
            "folder": self.folder,
            "weights": weights,
            "training": [(row.batch, dict(row.metrics)) for row in self.reporter.training_rows],
            "validation": [(row.batch, dict(row.metrics)) for row in self.reporter.validation_rows],
            "manifests": [manifest for _, manifest in self.reporter.checkpoints],
            "checkpoints": [manifest.batch for _, manifest in self.reporter.checkpoints],
        }


def train(folder: Path, communicator: Communicator, name: str) -> dict[str, Any]:
    """Train a case from beginning to end, in the parts that it says."""
    settings = CASES[name]
    resume: CheckpointManifest | None = None
    place = folder / name
    if settings.get("resumed"):
        place, resume = pickle.loads((folder / "resume.pkl").read_bytes())
    run = Run(place, communicator, settings)
    try:
        for stop in settings.get("stops", ()):
            resume = run.run(resume, stop)
        run.run(resume)
    except Exception as error:
        if "unwrapped" not in settings:
            raise
        return {"error": str(error)}
    return run.result()


_OF_TWO = {"aggregation_frequency": 2}
_WHOLE: Settings = {
    "dropout": True,
    "moving": True,
    "shuffle": True,
    "optimizer": lambda: V1.AdamOptimizer(0.05),
    "optimizations": _OF_TWO,
}
CASES: dict[str, Settings] = {
    # What ends with the weights, and the metrics, of one slot.
    "plain": {"optimizations": {"average_training_metrics": True}},
    "clips": {"clips": True, "optimizations": _OF_TWO, "optimizer": lambda: V1.AdamOptimizer(0.05)},
    "sum": {
        "resources": True,  # without it, these optimizers have no momentum, whoever trains
        "optimizer": lambda: LEGACY.SGD(0.1, momentum=0.5, clipnorm=0.5),
        "optimizations": {**_OF_TWO, "average_aggregated_gradients": False},
    },
    "premade": {"premade": True, "validated": 1},  # of which the second slot has none
    "compressed": {"optimizations": {"gradient_compression": True}},
    # What ends with the same bits, however often it is stopped.
    "whole": _WHOLE,
    "parts": {**_WHOLE, "stops": (3, 8)},
    "fewer": {**_WHOLE, "resumed": True},
    # What ends early, and what is refused.
    "stopped": {"stops_on_last": 3},
    "stopped_evaluating": {"evaluation_stops_on_last": True},
    "unwrapped": {"unwrapped": "never"},
    "dropped": {"unwrapped": "dropped"},
}


def main(folder: Path, rank: int, size: int, names: list[str]) -> None:
    """Run cases one after the other."""
    harness_of("estimator").prepare_process()
    gang = (
        None
        if size == 1
        else Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    )
    with joined(gang, "estimator", {"optimizations": {"tensor_fusion_cycle_time": 1}}, deadline=120.0) as communicator:
        for name in names:
            found = train(folder, communicator, name)
            (folder / f"{name}.{rank}.pkl").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])

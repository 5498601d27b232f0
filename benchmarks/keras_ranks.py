"""One of two processes that train a Keras model: as a trial, and by hand with Horovod, in turn.

Started by ``test_distributed.py`` as ``python keras_ranks.py <rank> <folder>``. Rank 0 reads commands from its input
(``ours``, by connections of the ranks' own, or ``horovod``; the empty line ends it) and answers each with the seconds
of a batch.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from ddp_ranks import BATCHES, Ticks
from det_harness.frameworks.keras.harness import KerasHarness
from det_harness.ranks import horovod_group
from det_harness.ranks.communicator import Communicator
from det_harness.ranks.group import joined
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter

from det_native.keras import TFKerasTrial
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.job import Gang
from det_native.schema.loading import load_config
from det_native.storage.checkpoints import CheckpointStorage

# On each slot.
BATCH = 64
# The looks of Horovod, in milliseconds, at what is to be exchanged.
CONFIG = {"distributed": {"backend": "horovod"}, "optimizations": {"tensor_fusion_cycle_time": 1}}


class Ticking(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Takes the time of every batch."""

    def __init__(self, ticks: Ticks) -> None:
        super().__init__()
        self._ticks = ticks

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._ticks.tick()


def medium_model() -> Any:
    """Return an MLP of 2.6 million weights."""
    layers = [tf.keras.Input(512), *(tf.keras.layers.Dense(1024, "relu") for _ in range(3)), tf.keras.layers.Dense(10)]
    return tf.keras.Sequential(layers)


def data() -> tuple[Any, Any]:
    """Return the rows of one epoch, of both slots."""
    generator = np.random.default_rng(0)
    rows = BATCH * 2 * BATCHES
    return generator.normal(size=(rows, 512)).astype("float32"), generator.integers(10, size=rows)


def compiled(model: Any, optimizer: Any) -> Any:
    """Compile the model."""
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def ours(folder: Path, communicator: Communicator) -> float:
    """Train a trial on both slots."""
    ticks = Ticks()

    class Medium(TFKerasTrial):
        def build_model(self) -> Any:
            return compiled(self.context.wrap_model(medium_model()), tf.keras.optimizers.SGD(0.01))

        def build_training_data_loader(self) -> Any:
            self.context.configure_fit(verbose=0)
            return data()

        def build_validation_data_loader(self) -> Any:
            return tuple(part[:8] for part in data())

        def keras_callbacks(self) -> list[Any]:
            return [Ticking(ticks)]

    hparams = {"global_batch_size": 2 * BATCH}
    config = load_config(
        {
            **CONFIG,
            "hyperparameters": hparams,
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": BATCHES}},
            "checkpoint_policy": "none",
            "resources": {"slots_per_trial": 2},
        },
        framework="keras",
    ).model_dump(mode="json")
    ranks = Ranks(communicator.rank, communicator.size, communicator.rank, communicator.size)
    environment = TrialEnvironment(config=config, hparams=hparams, ranks=ranks)
    reporter = RowsReporter("val_loss")
    checkpoints = CheckpointStorage(str(folder / "checkpoints"))
    services = Services(
        environment=environment,
        schedule=Schedule(periods_of(environment)),
        reporter=reporter,
        checkpoints=TrialCheckpoints(checkpoints, CheckpointOwner("keras", hparams), reporter),
        stop_requested=lambda: False,
        communicator=communicator,
    )
    tf.keras.backend.clear_session()
    KerasHarness().controller(Medium, services).run()
    return ticks.per_batch


def plain(folder: Path, communicator: Communicator) -> float:
    """Train the same model by hand, as Horovod's documents show it."""
    import horovod.tensorflow.keras as hvd

    tf.keras.backend.clear_session()
    ticks = Ticks()
    rows = tuple(part[communicator.rank :: 2] for part in data())
    model = compiled(medium_model(), hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01)))
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), Ticking(ticks)]
    model.fit(*rows, batch_size=BATCH, verbose=0, callbacks=callbacks)
    return ticks.per_batch


def main(rank: int, folder: Path) -> None:
    """Do what rank 0 is told, on both ranks."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    gang = Gang(rank=rank, size=2, local_rank=rank, local_size=2, rendezvous=str(folder / "meeting"))
    runs = {"ours": ours, "horovod": plain}
    horovod_group.is_started = lambda library: False  # ours does without what is there for the other
    with joined(gang, "keras", CONFIG, deadline=120.0) as communicator:
        while True:
            command = communicator.broadcast_object(sys.stdin.readline().strip() if rank == 0 else None)
            if not command:
                return
            seconds = runs[command](folder, communicator)
            if rank == 0:
                print(seconds, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

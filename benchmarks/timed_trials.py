"""Runs a trial class in this process, and takes the time of its batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from det_harness.frameworks.torch.controller import PyTorchTrialController
from rows_reporter import train_here
from tiny import Clock

from det_native.schema.loading import load_config


def per_batch(folder: Path, trial_class: Any, batches: int, batch_size: int) -> float:
    """Return the seconds a batch of a class that calls its ``tick()`` at the beginning of each.

    Parameters
    ----------
    folder : Path
        For checkpoints.
    trial_class : type of PyTorchTrial
    batches, batch_size : int
    """
    clock = Clock()
    train_timed(folder, trial_class, batches, batch_size, clock.tick)
    return clock.per_batch


def train_timed(folder: Path, trial_class: Any, batches: int, batch_size: int, tick: Callable[[], None]) -> None:
    """Train a class that calls its ``tick()`` at the beginning of each batch.

    Parameters
    ----------
    folder, trial_class, batches, batch_size
        See :func:`per_batch`.
    tick : callable
        What is to be called.
    """
    timed = type(trial_class.__name__, (trial_class,), {"tick": staticmethod(tick)})
    config = load_config(
        {
            "hyperparameters": {"global_batch_size": batch_size},
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": batches}},
            "checkpoint_policy": "none",
        },
        local=True,
    ).model_dump(mode="json")
    train_here(
        lambda services: PyTorchTrialController(timed, services),
        config=config,
        hparams={"global_batch_size": batch_size},
        trial_seed=0,
        directory=folder,
        framework="torch",
    )

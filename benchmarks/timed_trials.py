"""Runs a trial class in this process, and takes the time of its batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from det_harness.controllers.torch import PyTorchTrialController
from det_harness.local import run_local
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

    class Timed(trial_class):  # type: ignore[misc]
        tick = staticmethod(clock.tick)

    config = load_config(
        {
            "hyperparameters": {"global_batch_size": batch_size},
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": batches}},
            "checkpoint_policy": "none",
        },
        local=True,
    ).model_dump(mode="json")
    run_local(
        lambda services: PyTorchTrialController(Timed, services),
        config=config,
        hparams={"global_batch_size": batch_size},
        trial_seed=0,
        directory=folder,
        framework="torch",
    )
    return clock.per_batch

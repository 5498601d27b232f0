"""Training with PyTorch: ``PyTorchTrial`` and what goes with it."""

from typing import TYPE_CHECKING

from det_native.public_names import listed
from det_native.pytorch.callback import ClipGradsL2Norm, ClipGradsL2Value, PyTorchCallback
from det_native.pytorch.context import PyTorchTrialContext
from det_native.pytorch.data import DataLoader
from det_native.pytorch.experimental import PyTorchExperimentalContext
from det_native.pytorch.lr_scheduler import LRScheduler
from det_native.pytorch.metric_reducer import MetricReducer
from det_native.pytorch.nesting import TorchData, data_length, to_device
from det_native.pytorch.reducer import Reducer
from det_native.pytorch.samplers import (
    DistributedBatchSampler,
    RepeatBatchSampler,
    SkipBatchSampler,
    adapt_batch_sampler,
)
from det_native.pytorch.trial import PyTorchTrial
from det_native.trial import DistributedContext

if TYPE_CHECKING:
    from det_native.trainers.pytorch import (
        Batch,
        Epoch,
        Trainer,
        TrainUnit,
        init,
        load_trial_from_checkpoint_path,
    )

__all__ = [
    "Batch",
    "ClipGradsL2Norm",
    "ClipGradsL2Value",
    "DataLoader",
    "DistributedBatchSampler",
    "DistributedContext",
    "Epoch",
    "LRScheduler",
    "MetricReducer",
    "PyTorchCallback",
    "PyTorchExperimentalContext",
    "PyTorchTrial",
    "PyTorchTrialContext",
    "Reducer",
    "RepeatBatchSampler",
    "SkipBatchSampler",
    "TorchData",
    "TrainUnit",
    "Trainer",
    "adapt_batch_sampler",
    "data_length",
    "init",
    "load_trial_from_checkpoint_path",
    "to_device",
]

_OF_TRAINER = ("Batch", "Epoch", "TrainUnit", "Trainer", "init", "load_trial_from_checkpoint_path")


def __getattr__(name: str) -> object:
    if name in _OF_TRAINER:
        from det_native.imports import load

        value: object = getattr(load("det_native.trainers.pytorch"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = listed(__all__)

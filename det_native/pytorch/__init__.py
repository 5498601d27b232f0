"""Training with PyTorch: ``PyTorchTrial`` and what goes with it."""

from typing import Never

from det_native.public_names import listed, without_init
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

__all__ = [
    "ClipGradsL2Norm",
    "ClipGradsL2Value",
    "DataLoader",
    "DistributedBatchSampler",
    "DistributedContext",
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
    "adapt_batch_sampler",
    "data_length",
    "to_device",
]


def __getattr__(name: str) -> Never:
    if name == "init":
        raise without_init("pytorch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = listed(__all__)

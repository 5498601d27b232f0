"""Training with PyTorch: ``PyTorchTrial`` and what goes with it."""

from det_native.later import refuse
from det_native.pytorch.callback import PyTorchCallback
from det_native.pytorch.context import PyTorchTrialContext
from det_native.pytorch.data import DataLoader, TorchData, data_length, to_device
from det_native.pytorch.lr_scheduler import LRScheduler
from det_native.pytorch.reducer import Reducer
from det_native.pytorch.samplers import (
    DistributedBatchSampler,
    RepeatBatchSampler,
    SkipBatchSampler,
    adapt_batch_sampler,
)
from det_native.pytorch.trial import PyTorchTrial

__all__ = [
    "DataLoader",
    "DistributedBatchSampler",
    "LRScheduler",
    "PyTorchCallback",
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

__getattr__ = refuse("det_native.pytorch", {"MetricReducer", "PyTorchExperimentalContext"})

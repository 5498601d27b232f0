"""The class that users subclass to train with PyTorch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch.utils.data

from det_native.pytorch.callback import PyTorchCallback
from det_native.pytorch.context import PyTorchTrialContext
from det_native.pytorch.data import DataLoader
from det_native.pytorch.nesting import TorchData, data_length
from det_native.pytorch.reducer import Reducer
from det_native.trial import ControllerClass, Trial


class PyTorchTrial(Trial, ABC):
    """A training with PyTorch: models, optimizers, data and one step, without the loop.

    Override exactly one of ``evaluate_batch`` and ``evaluate_full_dataset``.

    Examples
    --------
    >>> class Digits(PyTorchTrial):
    ...     def __init__(self, context):
    ...         self.context = context
    ...         self.model = context.wrap_model(torch.nn.Linear(64, 10))
    ...         self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
    ...
    ...     def train_batch(self, batch, epoch_idx, batch_idx):
    ...         images, labels = batch
    ...         loss = torch.nn.functional.cross_entropy(self.model(images), labels)
    ...         self.context.backward(loss)
    ...         self.context.step_optimizer(self.optimizer)
    ...         return {"loss": loss}
    """

    trial_context_class: ClassVar[type[PyTorchTrialContext]] = PyTorchTrialContext
    trial_controller_class: ClassVar[Any] = ControllerClass("torch")

    @abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """Make models, optimizers and learning rate schedulers, and wrap them with `context`."""

    @abstractmethod
    def train_batch(self, batch: TorchData, epoch_idx: int, batch_idx: int) -> torch.Tensor | dict[str, Any]:
        """Train on one batch.

        Parameters
        ----------
        batch : tensor, sequence or dict
            What the training loader yields, on the trial's device.
        epoch_idx : int
            Epochs completed since the start of training.
        batch_idx : int
            Batches completed since the start of training.

        Returns
        -------
        tensor or dict
            Scalar metrics by name, the same names for every batch; a tensor alone is the ``loss``.
        """

    @abstractmethod
    def build_training_data_loader(self) -> DataLoader | torch.utils.data.DataLoader[Any]:
        """Return the loader of the training data."""

    @abstractmethod
    def build_validation_data_loader(self) -> DataLoader | torch.utils.data.DataLoader[Any]:
        """Return the loader of the validation data."""

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Return callbacks by name; the name is the key of the callback's saved state."""
        return {}

    def evaluate_batch(self, batch: TorchData) -> dict[str, Any]:
        """Return the validation metrics of one batch: scalars by name, the same names for every batch."""
        raise TypeError(f"{type(self).__name__} does not override evaluate_batch()")

    def get_batch_length(self, batch: TorchData) -> int:
        """Return the records of a batch, by which its validation metrics are weighted.

        By default the first dimension of its first tensor; override it for batches where that is something else.
        """
        return data_length(batch)

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        """Return how the batches' metrics are reduced: one reducer for all, or one per metric."""
        return Reducer.AVG

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader[Any]) -> dict[str, Any]:
        """Return the validation metrics of the whole validation dataset, computed in one process."""
        raise TypeError(f"{type(self).__name__} does not override evaluate_full_dataset()")

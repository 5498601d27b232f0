"""Event files from PyTorch code."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from det_native.errors import MissingDependencyError
from det_native.frameworks import translated
from det_native.tensorboard import place


class TorchWriter:
    """Writes TensorBoard event files that are kept with the trial.

    Attributes
    ----------
    writer : torch.utils.tensorboard.SummaryWriter
        Torch's own writer, set to the trial's folder.

    Examples
    --------
    >>> class MyModel(PyTorchTrial):
    ...     def __init__(self, context):
    ...         self.logger = TorchWriter()
    ...
    ...     def train_batch(self, batch, epoch_idx, batch_idx):
    ...         self.logger.writer.add_scalar("my_metric", np.random.random(), batch_idx)
    """

    writer: Any

    def __init__(self) -> None:
        self.writer = _summary_writer()(log_dir=str(place.get_base_path()))
        place.opened(self.writer)

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        """Write one number.

        Parameters
        ----------
        name : str
        value : number, or tensor or array of one element
        step : int
            Usually the number of batches.
        """
        self.writer.add_scalar(name, value, step)

    def reset(self) -> None:
        """Write out what is buffered."""
        self.writer.flush()


def _summary_writer() -> Any:
    with translated("TorchWriter"):
        import torch  # noqa: F401 (its absence is to be told first)
    if "tensorflow" not in sys.modules and "tensorboard.compat.notf" not in sys.modules:
        # With this module there, tensorboard writes files by itself, and does not import TensorFlow for it (seconds).
        sys.modules["tensorboard.compat.notf"] = ModuleType("tensorboard.compat.notf")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("tensorboard"):
            raise
        raise MissingDependencyError(
            "TorchWriter needs TensorBoard, which is not installed in this Python: run  pip install tensorboard"
        ) from error
    return SummaryWriter

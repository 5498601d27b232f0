"""The training of a loop over ``context.epochs()`` in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from det_harness.frameworks.torch.epochs.definition import CapturedLoop
from det_harness.frameworks.torch.training import TorchTraining
from det_harness.loops.rows import EpochRows
from det_harness.loops.training import LoopTraining
from det_native.pytorch.epochs_call import TorchEpochsCall


class EpochsTraining(LoopTraining, TorchTraining):  # type: ignore[misc]  # methods that are there for types only
    """See ``TorchTraining``; it has no batches of its own."""

    def __init__(self, definition: CapturedLoop, call: TorchEpochsCall) -> None:
        super().__init__(definition, own_loop=True)
        self.loop = definition
        self.rows = EpochRows(definition, lambda: call.context.loading.taken)

    @property
    def stops(self) -> bool:
        """Whether this rank is asked for an early end."""
        return self.ranks.stops

    def _batches_from(self, position: Any) -> Iterator[Any]:
        if position is not None:
            self.count_passes_as(position["epoch_length"])
        return _Place(self.epoch_length)


class _Place(Iterator[Any]):
    """What stands for the place in data that nobody gives here: as how many batches an epoch counts.

    A loader may have another length when the trial goes on.
    """

    def __init__(self, epoch_length: int) -> None:
        self.position = {"epoch_length": epoch_length}

    def __next__(self) -> Any:
        raise StopIteration

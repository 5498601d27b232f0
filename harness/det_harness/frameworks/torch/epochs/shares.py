"""Passes over wrapped loaders on several slots: each has its share of every batch that the loop trains on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.utils.data as torch_data

from det_harness.ranks.communicator import Communicator
from det_native.pytorch.native_call import as_ours
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.passes import PassItems
from det_native.pytorch.samplers import global_generators, own_generators
from det_native.pytorch.wrapped_loader import WrappedLoader

logger = logging.getLogger("det_harness")

_END = object()


class Shares:
    """Gives a slot its part of what wrapped loaders give.

    A pass belongs to the training where it begins with gradients on and a model in training mode; each slot gets its
    share of the records of each of its batches. Any other pass, an evaluation, gives every slot everything, so that
    what the user's code counts there is right.

    A loop that divides a sum over records by ``len(loader.dataset)`` divides by the records of its own share, so that
    the mean over the slots is right.

    The first slot loads with the random numbers that a loop on one slot has there, the others with copies of them; what
    else their loops draw is their own.
    """

    def __init__(self, context: PyTorchRunContext, communicator: Communicator) -> None:
        self._context = context
        self._communicator = communicator
        self._said = False
        self._passes = 0
        self._shares: dict[int, ShareOfBatches] = {}  # of the loaders whose last pass was divided, by id

    def pass_of(self, loader: WrappedLoader) -> Iterator[Any]:
        """Begin a pass; a collective call."""
        state = self._communicator.broadcast_object(global_generators())
        trains = torch.is_grad_enabled() and any(model.training for model in self._context.models)
        plain = loader.plain
        self._shares.pop(id(loader), None)
        if not trains:
            return self._loaded(loader.batches, state)
        if isinstance(plain, torch_data.DataLoader) and plain.batch_sampler is not None and not as_ours(plain).iterable:
            self._passes += 1
            items = PassItems(plain.batch_sampler, self._context.env.trial_seed)
            items.begin_pass(self._passes, first=0, skip=0)
            share = ShareOfBatches(items, self._communicator.rank, self._communicator.size)
            self._shares[id(loader)] = share
            return self._loaded(lambda: iter(as_ours(plain).with_batch_sampler(share)), state)
        return (self._share(batch) for batch in self._loaded(loader.batches, state))

    def dataset_of(self, loader: WrappedLoader) -> Any:
        """Return the dataset of a loader, as long as this slot's share of its last pass is."""
        whole, share = loader.whole_dataset(), self._shares.get(id(loader))
        if share is None or not hasattr(whole, "__len__"):
            return whole
        return ShareOfDataset(whole, share.given or len(whole) // self._communicator.size)

    def names_of_data(self, values: Mapping[str, Any]) -> list[str]:
        """Return the names that stand for the whole of what is divided: a dataset, or a tensor or array of it."""
        whole = {id(loader.whole_dataset()) for loader in self._context.loaders if hasattr(loader.loader, "dataset")}
        for loader in self._context.loaders:
            tensors = getattr(getattr(loader.loader, "dataset", None), "tensors", ())
            whole.update(id(tensor) for tensor in tensors)
        return sorted(name for name, value in values.items() if id(value) in whole)

    def _loaded(self, begin: Callable[[], Iterator[Any]], state: dict[str, Any]) -> Iterator[Any]:
        """Begin a pass: on the first slot as in plain PyTorch, on the others with copies of its random numbers."""
        return begin() if self._communicator.rank == 0 else _under_state(begin, state)

    def _share(self, batch: Any) -> Any:
        """Return this slot's records of a batch of tensors."""
        rank, size = self._communicator.rank, self._communicator.size
        lengths = set(_lengths(batch))
        length = lengths.pop() if len(lengths) == 1 else 0
        if length < size:
            if not self._said:
                self._said = True
                logger.warning(
                    "A batch cannot be divided among %d slots, since its tensors have no first dimension of at least "
                    "so many records in common: every slot trains on all of it. A torch DataLoader over a dataset with "
                    "__getitem__() divides by records.",
                    size,
                )
            return batch
        first, end = bounds(length, rank, size)
        return _sliced(batch, slice(first, end))


class ShareOfBatches:
    """A batch sampler that gives one slot's part of each batch of another one; a batch too small for all, whole.

    Attributes
    ----------
    given : int
        Records so far.
    """

    def __init__(self, batches: Any, rank: int, size: int) -> None:
        self.given = 0
        self._batches = batches
        self._rank = rank
        self._size = size

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for batch in self._batches:
            records = list(batch)
            if len(records) >= self._size:
                first, end = bounds(len(records), self._rank, self._size)
                records = records[first:end]
            self.given += len(records)
            yield records

    def __len__(self) -> int:
        return len(self._batches)


class ShareOfDataset:
    """A dataset that is as long as what a slot is given of it; all else is that of the whole."""

    def __init__(self, whole: Any, length: int) -> None:
        self._whole = whole
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return self._whole[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_whole", "_length"):
            raise AttributeError(name)
        return getattr(self._whole, name)


def bounds(length: int, rank: int, size: int) -> tuple[int, int]:
    """Return where one of equal parts begins and ends.

    Examples
    --------
    >>> [bounds(5, rank, 2) for rank in range(2)]
    [(0, 2), (2, 5)]
    """
    return rank * length // size, (rank + 1) * length // size


def _lengths(batch: Any) -> Iterator[int]:
    """Yield the first dimension of each tensor of a batch; 0 for what is no tensor, or has no dimension."""
    if isinstance(batch, dict | list | tuple):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from _lengths(part)
    else:
        yield len(batch) if isinstance(batch, torch.Tensor) and batch.dim() else 0


def _sliced(batch: Any, records: slice) -> Any:
    if isinstance(batch, dict):
        return {key: _sliced(part, records) for key, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [_sliced(part, records) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch[records]


def _under_state(begin: Callable[[], Iterator[Any]], state: dict[str, Any]) -> Iterator[Any]:
    """Yield batches that are loaded under random numbers of their own, which begin with a state."""
    batches: Iterator[Any] | None = None
    while True:
        with own_generators(0, state) as after:
            if batches is None:
                batches = begin()
            batch = next(batches, _END)
        if batch is _END:
            return
        state = after
        yield batch

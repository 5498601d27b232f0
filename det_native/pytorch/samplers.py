"""Batch samplers whose order is a pure function of (seed, epoch), and the chain that repeats, shards and skips them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from itertools import chain, count, islice
from typing import Any, Protocol

import numpy as np
import torch

from det_native.errors import TrialDefinitionError

_CHUNK = 128


def seed_for(*parts: int) -> int:
    """Mix integers into one seed in [0, 2**63); equal parts give equal seeds on every machine and in every process."""
    digest = hashlib.sha256(":".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class EpochOrder(Protocol):
    """The items of one epoch (lists of indices, or single indices without automatic batching), by epoch number."""

    def __len__(self) -> int:
        """Return the items of one epoch."""

    def items(self, epoch: int) -> Iterator[Any]:
        """Yield the items of an epoch; the same for equal epochs."""


class PlainOrder:
    """Order of a dataset read in sequence or shuffled anew each epoch, in batches or one by one.

    Parameters
    ----------
    records : int
        Length of the dataset.
    batch_size : int or None
        None yields single indices.
    drop_last : bool
        Leave out an incomplete last batch.
    shuffle : bool
    seed : int
        Seed of the trial; mixed with the epoch's number.
    """

    def __init__(self, records: int, batch_size: int | None, *, drop_last: bool, shuffle: bool, seed: int) -> None:
        self._records = records
        self._batch_size = batch_size
        self._drop_last = drop_last
        self._shuffle = shuffle
        self._seed = seed

    def __len__(self) -> int:
        if self._batch_size is None:
            return self._records
        full, rest = divmod(self._records, self._batch_size)
        return full if self._drop_last or not rest else full + 1

    def items(self, epoch: int) -> Iterator[Any]:
        """Return the epoch's batches of indices (or single indices)."""
        return chain.from_iterable(self._chunks(epoch))

    def _chunks(self, epoch: int) -> Iterator[list[Any]]:
        """Yield the items many at a time: slicing a list is much quicker than slicing a tensor."""
        order: torch.Tensor | None = None
        if self._shuffle:
            order = torch.randperm(self._records, generator=torch.Generator().manual_seed(seed_for(self._seed, epoch)))
        size = self._batch_size or 1
        used = min(len(self) * size, self._records)
        for start in range(0, used, _CHUNK * size):
            end = min(start + _CHUNK * size, used)
            indices = order[start:end].tolist() if order is not None else list(range(start, end))
            if self._batch_size is None:
                yield indices
            else:
                yield [indices[first : first + size] for first in range(0, end - start, size)]


class IsolatedOrder:
    """Order of a sampler that the user brings, drawn under random number generators of its own.

    The sampler may use the global generators of Python, numpy and torch, or a ``generator`` attribute; both are seeded
    for the epoch, and the global ones are put back after each chunk of draws, so that training is not disturbed.
    """

    def __init__(self, sampler: Iterable[Any], seed: int) -> None:
        if not isinstance(sampler, Sized):
            raise TrialDefinitionError(
                f"The sampler {type(sampler).__name__} has no length; give it a __len__() with its batches per epoch."
            )
        self._sampler = sampler
        self._length = len(sampler)
        self._seed = seed

    def __len__(self) -> int:
        return self._length

    def items(self, epoch: int) -> Iterator[Any]:
        """Yield what the sampler yields in this epoch."""
        seed = seed_for(self._seed, epoch)
        state: dict[str, Any] | None = None
        iterator: Iterator[Any] | None = None
        while True:
            with own_generators(seed, state) as after:
                if iterator is None:
                    self._enter_epoch(epoch, seed)
                    iterator = iter(self._sampler)
                chunk = list(islice(iterator, _CHUNK))
            state = after
            yield from chunk
            if len(chunk) < _CHUNK:
                return

    def _enter_epoch(self, epoch: int, seed: int) -> None:
        for part in enter_epoch(self._sampler, epoch):
            generator = getattr(part, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(seed)


def enter_epoch(sampler: Any, epoch: int) -> tuple[Any, Any]:
    """Tell a sampler, and the one that a batch sampler has, which epoch begins; return both."""
    parts = sampler, getattr(sampler, "sampler", None)
    for part in parts:
        set_epoch = getattr(part, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)
    return parts


@contextmanager
def own_generators(seed: int, state: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Run the block under seeded global generators (or under `state`); gives what they are afterwards."""
    outside = global_generators()
    after: dict[str, Any] = {}
    try:
        if state is None:
            random.seed(seed)
            np.random.seed(seed % 2**32)
            torch.default_generator.manual_seed(seed)
        else:
            _set_generators(state)
        yield after
        after.update(global_generators())
    finally:
        _set_generators(outside)


def global_generators() -> dict[str, Any]:
    """Return the states of the global generators of Python, NumPy and torch."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.default_generator.get_state(),
    }


def _set_generators(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.default_generator.set_state(state["torch"])


class _Epochs:
    """A plain batch sampler seen as an order: every epoch iterates it once more."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __len__(self) -> int:
        return len(self._sampler)

    def items(self, epoch: int) -> Iterator[Any]:
        set_epoch = getattr(self._sampler, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)
        return iter(self._sampler)


class RepeatBatchSampler:
    """Yields a batch sampler's batches for ever, epoch after epoch; the length is that of one epoch.

    Parameters
    ----------
    batch_sampler : batch sampler or EpochOrder
    first_epoch : int
        Number of the epoch to begin with.
    """

    def __init__(self, batch_sampler: Any, first_epoch: int = 0) -> None:
        self._order: EpochOrder = batch_sampler if hasattr(batch_sampler, "items") else _Epochs(batch_sampler)
        self._first_epoch = first_epoch

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Any]:
        # One after the other without a frame between: this is done for every batch.
        return chain.from_iterable(map(self._epoch, count(self._first_epoch)))

    def _epoch(self, epoch: int) -> Iterator[Any]:
        items = iter(self._order.items(epoch))
        for first in items:
            return chain((first,), items)
        raise TrialDefinitionError("The training data loader yields no batches; its dataset or sampler is empty.")


class DistributedBatchSampler:
    """Yields every `num_replicas`-th batch, beginning with number `rank`."""

    def __init__(self, batch_sampler: Any, num_replicas: int, rank: int) -> None:
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank must be in [0, {num_replicas}), not {rank}")
        self._batch_sampler = batch_sampler
        self._num_replicas = num_replicas
        self._rank = rank

    def __len__(self) -> int:
        full, rest = divmod(len(self._batch_sampler), self._num_replicas)
        return full + (1 if self._rank < rest else 0)

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self._batch_sampler), self._rank, None, self._num_replicas)


class SkipBatchSampler:
    """Leaves out the first `skip` batches; the length stays that of the sampler beneath (see `RepeatBatchSampler`)."""

    def __init__(self, batch_sampler: Any, skip: int) -> None:
        self._batch_sampler = batch_sampler
        self._skip = skip

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self._batch_sampler), self._skip, None)


class _OneEpoch:
    """The first epoch of an order, as a batch sampler."""

    def __init__(self, order: EpochOrder) -> None:
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Any]:
        return self._order.items(0)


def adapt_batch_sampler(
    batch_sampler: Any, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
) -> Any:
    """Chain repeating, sharding by batch and skipping, in this order.

    Parameters
    ----------
    batch_sampler : batch sampler or EpochOrder
    repeat : bool
        Go on for ever.
    skip : int
        Batches of this replica to leave out.
    num_replicas, rank : int
        Take every `num_replicas`-th batch, from number `rank`.
    """
    adapted = batch_sampler
    if repeat:
        whole_epochs = 0
        if isinstance(batch_sampler, PlainOrder) and len(batch_sampler):
            # Whole epochs are stepped over without drawing them: only possible where their length is certain.
            whole_epochs = skip * num_replicas // (len(batch_sampler) * num_replicas) * num_replicas
            skip -= whole_epochs * len(batch_sampler) // num_replicas
        adapted = RepeatBatchSampler(batch_sampler, first_epoch=whole_epochs)
    elif hasattr(batch_sampler, "items"):
        adapted = _OneEpoch(batch_sampler)
    if num_replicas > 1:
        adapted = DistributedBatchSampler(adapted, num_replicas, rank)
    if skip:
        adapted = SkipBatchSampler(adapted, skip)
    return adapted

"""Loading that draws the same random numbers for a batch, however the loader came to it."""

from __future__ import annotations

import atexit
import os
import random
import signal
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
import torch.utils.data as torch_data

from det_native.pytorch.samplers import own_generators, seed_for


@dataclass(frozen=True)
class Numbered:
    """A batch's indices (or one index), with the number of the batch since the start of training."""

    number: int
    indices: Any


class NumberedItems:
    def __init__(self, items: Any, first: int) -> None:
        self._items = items
        self._first = first

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Numbered]:
        return map(Numbered, count(self._first), self._items)


class Loader(torch_data.DataLoader[Any]):
    """A torch loader whose workers are told to end when the process ends.

    The traceback of an error in the dataset keeps the iterator, and so its workers, alive to the end of the process,
    which would wait for them for ever: they are deaf to the signal that it sends them then.
    """

    def __iter__(self) -> Any:
        iterator = super().__iter__()
        if self.num_workers > 0:
            _running[iterator] = os.getpid()
        return iterator


_running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


@atexit.register
def _end_workers() -> None:
    for iterator, process in list(_running.items()):
        if process == os.getpid():  # a fork has the iterators of its parent, but not their workers
            iterator._shutdown_workers()


@dataclass(frozen=True)
class WorkerStart:
    """Makes a loader worker deaf to interrupts, then runs the user's function, which sees the user's own dataset.

    They are meant for the training process, with which its workers end anyway. Programs that the dataset starts inherit
    this: a pause, whose signal goes to them too, must not end one in the midst of a record. Who ends one uses kill().
    """

    function: Callable[[int], None] | None

    def __call__(self, worker: int) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        info = torch_data.get_worker_info()
        if info is not None and isinstance(info.dataset, SeededDataset):
            object.__setattr__(info, "dataset", info.dataset.of_the_user)  # it refuses to be changed in another way
        if self.function is not None:
            self.function(worker)


class ReplicaLoader:
    """A torch loader without workers, of one replica of several: each batch is loaded under generators of its own.

    The generators of the process are seeded alike on all replicas, so that random decisions in training are the same
    everywhere. What is drawn while loading, to change the records, has to differ.

    Attributes that it does not have itself are the loader's.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
    seed : int
        Of this replica.
    first : int
        Number of its first batch.
    """

    def __init__(self, loader: torch_data.DataLoader[Any], seed: int, first: int) -> None:
        self._loader = loader
        self._seed = seed
        self._first = first

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        iterator = iter(self._loader)
        for number in count(self._first):
            with own_generators(seed_for(self._seed, number), None):
                batch = next(iterator, _END)
            if batch is _END:
                return
            yield batch


_END = object()


class SeededDataset:
    """Stands before a dataset in loader workers and seeds their generators for each batch: skipping changes nothing.

    Attributes that it does not have itself are the dataset's.
    """

    def __init__(self, dataset: Any, seed: int) -> None:
        self._dataset = dataset
        self._seed = seed

    @property
    def of_the_user(self) -> Any:
        """The dataset that it stands before."""
        return self._dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_dataset":
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitem__(self, item: Numbered) -> Any:
        self._seed_generators(item.number)
        return self._dataset[item.indices]

    def __getitems__(self, item: Numbered) -> Any:
        """Load a whole batch (torch's protocol for batched fetching)."""
        self._seed_generators(item.number)
        batched = getattr(self._dataset, "__getitems__", None)
        if batched is not None:
            return batched(item.indices)
        return [self._dataset[index] for index in item.indices]

    def _seed_generators(self, number: int) -> None:
        seed = seed_for(self._seed, number)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)

"""Data loading with exact resume: ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import torch
import torch.utils.data as torch_data
from torch.utils.data.distributed import DistributedSampler

from det_native.errors import InvalidDataError
from det_native.pytorch.passes import Passes, generators_of
from det_native.pytorch.samplers import (
    EpochOrder,
    IsolatedOrder,
    PlainOrder,
    adapt_batch_sampler,
    seed_for,
)
from det_native.pytorch.seeded_loading import (
    Loader,
    Numbered,
    NumberedItems,
    ReplicaLoader,
    SeededDataset,
    WorkerStart,
)


class DataLoader:
    """Loads batches of a dataset; a drop-in for ``torch.utils.data.DataLoader``, with the same arguments.

    In training, the order of batches depends on the trial's seed and the number of the epoch only, so that a trial
    continues at the exact batch inside an epoch. A sampler with random draws of its own is seeded per epoch for this;
    with worker processes, each batch is loaded under random number generators seeded for that batch.

    An iterable dataset is continued by reading its current pass again up to that batch, under generators seeded for the
    pass. It needs a length, or ``records_per_epoch`` in the configuration.

    By itself it behaves as torch's does: iterate it, take its length, its attributes.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        **further: Any,
    ) -> None:
        if not isinstance(dataset, torch_data.IterableDataset) and not hasattr(dataset, "__getitem__"):
            raise InvalidDataError(
                f"The dataset of a DataLoader needs __getitem__() and __len__(), which {type(dataset).__name__} lacks."
            )
        self._loader: torch_data.DataLoader[Any] = torch_data.DataLoader(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            **further,
        )

    @classmethod
    def from_torch(cls, loader: torch_data.DataLoader[Any]) -> Self:
        """Adapt a torch loader: its dataset, sampler and all its other settings."""
        adapted = cls.__new__(cls)
        adapted._loader = loader
        return adapted

    @property
    def plain_batches(self) -> bool:
        """Whether batches are so many records each, and not made by a batch sampler of the user's."""
        return self._loader.batch_size is not None

    def with_batch_size(self, batch_size: int) -> DataLoader:
        """Return the same loader with batches of another size; for `plain_batches` only."""
        base = self._loader
        return DataLoader(
            base.dataset,
            batch_size=batch_size,
            sampler=None if self.iterable else base.sampler,
            drop_last=base.drop_last,
            generator=base.generator,
            **(self._same_settings(persistent_workers=base.persistent_workers) | self._own_start()),
        )

    def with_batch_sampler(self, batch_sampler: Any) -> DataLoader:
        """Return the same loader with another choice of records; not for an iterable dataset."""
        settings = self._same_settings(persistent_workers=False) | self._own_start()
        return DataLoader(
            self._loader.dataset, batch_sampler=batch_sampler, generator=self._loader.generator, **settings
        )

    def _own_start(self) -> dict[str, Any]:
        return {"worker_init_fn": self._loader.worker_init_fn, "pin_memory": self._loader.pin_memory}

    @property
    def dataset(self) -> Any:
        """The dataset."""
        return self._loader.dataset

    @property
    def batch_size(self) -> int | None:
        """Records per batch, None with a batch sampler of the user's."""
        return self._loader.batch_size

    @property
    def iterable(self) -> bool:
        """Whether the dataset is iterable only, so that skipping means reading."""
        return isinstance(self._loader.dataset, torch_data.IterableDataset)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def get_data_loader(
        self,
        repeat: bool = False,
        skip: int = 0,
        num_replicas: int = 1,
        rank: int = 0,
        *,
        seed: int = 0,
        position: Sequence[int] | None = None,
    ) -> Any:
        """Make the loader of one replica: torch's own, except for an iterable dataset that is repeated or sharded.

        Parameters
        ----------
        repeat : bool
            Go on for ever, epoch after epoch.
        skip : int
            Batches of this replica to leave out at the start; they are not loaded.
        num_replicas, rank : int
            Take every `num_replicas`-th batch, from number `rank`.
        seed : int
            Seed of the order of batches, and of what loader workers draw.
        position : (int, int), optional
            For an iterable dataset, instead of `skip`: the ``position`` of the first replica's iterator.
        """
        base = self._loader
        if self.iterable:
            return self._stream(repeat, skip, num_replicas, rank, seed, position)
        items = adapt_batch_sampler(self._order(seed), repeat, skip, num_replicas, rank)
        if base.num_workers > 0:
            items = NumberedItems(items, skip)
        # An iterator draws one number when it starts: from here, not from the generator that the model uses.
        loader = self._loader_of(items, seed_for(seed, rank), torch.Generator().manual_seed(seed_for(seed, rank)))
        if num_replicas > 1 and base.num_workers == 0:
            return ReplicaLoader(loader, seed_for(seed, rank), skip)
        return loader

    def as_in_torch(self, seed: int) -> Any:
        """Return a loader whose order is drawn as the user's own loader draws it, from the same random numbers.

        Parameters
        ----------
        seed : int
            Of what loader workers draw, and of an iterable dataset.
        """
        base = self._loader
        if self.iterable:
            return self._stream(False, 0, 1, 0, seed, None, draws_seed=True)
        items = self.plain_sampler
        return self._loader_of(
            NumberedItems(items, 0) if base.num_workers else items, seed_for(seed, 0), base.generator
        )

    def training_as_in_torch(
        self, seed: int, done: int, position: Any, others: Mapping[str, torch.Generator] = MappingProxyType({})
    ) -> Any:
        """Return the batches of a training on one slot, which are ordered as plain torch orders them.

        Parameters
        ----------
        seed : int
        done : int
            Batches that are done.
        position : optional
            What ``position`` of the iterator was then; None at the start.
        others : dict
            Further generators that the training draws from, by name: they go on with it.
        """
        base = self._loader
        if self.iterable:
            return iter(self._stream(True, 0, 1, 0, seed, position, draws_seed=True))
        return Passes(
            lambda items: self._loader_of(items, seed_for(seed, 0), base.generator),
            self.plain_sampler,
            repeatable=_is_plain(base.sampler) and self.plain_batches,
            generators={**generators_of(base), **others},
            seed=seed,
            numbered=Numbered if base.num_workers > 0 else None,
            done=done,
            position=position,
        )

    @property
    def generators(self) -> dict[str, torch.Generator]:
        """The generators of its own that it draws from, by name."""
        return generators_of(self._loader)

    @property
    def plain_sampler(self) -> Any:
        """What torch's iterator takes its items from."""
        return self._loader.sampler if self._loader.batch_sampler is None else self._loader.batch_sampler

    def _loader_of(self, items: Any, seed: int, generator: torch.Generator | None) -> Loader:
        """Return a torch loader of these items, with the settings of this one."""
        base = self._loader
        dataset: Any = base.dataset
        if base.num_workers > 0:
            dataset = SeededDataset(dataset, seed)
        batching = (
            {"batch_sampler": items} if base.batch_sampler is not None else {"sampler": items, "batch_size": None}
        )
        settings = self._same_settings(persistent_workers=base.persistent_workers)
        return Loader(dataset, generator=generator, **batching, **settings)

    def _same_settings(self, *, persistent_workers: bool) -> dict[str, Any]:
        """Return what a loader made from this one has of it. The order of batches is always kept."""
        base = self._loader
        settings: dict[str, Any] = {
            "num_workers": base.num_workers,
            "collate_fn": base.collate_fn,
            "pin_memory": base.pin_memory and torch.cuda.is_available(),
            "timeout": base.timeout,
        }
        if base.num_workers > 0:
            settings |= {
                "worker_init_fn": WorkerStart(base.worker_init_fn),
                "prefetch_factor": base.prefetch_factor,
                "persistent_workers": persistent_workers,
                "multiprocessing_context": base.multiprocessing_context,
            }
        return settings

    def _stream(
        self,
        repeat: bool,
        skip: int,
        num_replicas: int,
        rank: int,
        seed: int,
        position: Sequence[int] | None,
        *,
        draws_seed: bool = False,
    ) -> Any:
        from det_native.pytorch.streams import StreamLoader, draw_base_seed

        base = self._loader

        def make_pass(generator: torch.Generator | None) -> torch_data.DataLoader[Any]:
            # Workers that live through several passes would go on drawing where the last pass ended.
            return Loader(
                base.dataset,
                batch_size=base.batch_size,
                drop_last=base.drop_last,
                generator=generator,
                **self._same_settings(persistent_workers=False),
            )

        if not repeat and not skip and num_replicas == 1:
            if draws_seed:
                return make_pass(base.generator)
            return make_pass(torch.Generator().manual_seed(seed_for(seed, rank)))
        try:
            length = len(base)
        except TypeError:
            length = None
        started = position is not None
        return StreamLoader(
            make_pass,
            base.dataset,
            seed=seed,
            length=length,
            repeat=repeat,
            start=(int(position[0]), int(position[1])) if position is not None else (0, 0),
            # The first replica took the last batch before the start: the others of its round come first.
            skip=(num_replicas - 1 if started else skip * num_replicas) + rank,
            num_replicas=num_replicas,
            draw_seed=(lambda: draw_base_seed(base)) if draws_seed else None,
        )

    def _order(self, seed: int) -> EpochOrder:
        base = self._loader
        sampler = base.sampler
        # Of a batch sampler of the user's, whatever its type, torch does not tell the batch size.
        plain_batches = base.batch_sampler is None or base.batch_size is not None
        if plain_batches and _is_plain(sampler):
            return PlainOrder(
                len(sampler),  # type: ignore[arg-type]  # SequentialSampler and RandomSampler have a length
                base.batch_size if base.batch_sampler is not None else None,
                drop_last=base.drop_last,
                shuffle=isinstance(sampler, torch_data.RandomSampler),
                seed=seed,
            )
        return IsolatedOrder(sampler if base.batch_sampler is None else base.batch_sampler, seed)


def _is_plain(sampler: Any) -> bool:
    if type(sampler) is torch_data.SequentialSampler:
        return True
    return (
        type(sampler) is torch_data.RandomSampler
        and not sampler.replacement
        and sampler.num_samples == len(sampler.data_source)
    )


def check_unshared(owner: str, loader: Any) -> None:
    """Refuse a loader that has one slot's share of the data: it would be divided among the slots once more.

    Raises
    ------
    InvalidDataError
        The message begins with `owner`.
    """
    for sampler in (loader.sampler, getattr(loader.batch_sampler, "sampler", None)):
        if isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1:
            raise InvalidDataError(
                f"{owner} with a DistributedSampler, which takes one of {sampler.num_replicas} shares of the data: "
                "leave the sampler out, with shuffle=True if it shuffles. Each slot gets its own batches of the whole."
            )


def adapt_data_loader(loader: Any, method: str) -> DataLoader:
    """Return what a ``build_*_data_loader`` method returned as our loader.

    Raises
    ------
    InvalidDataError
        If it is neither a ``det.pytorch.DataLoader`` nor a torch one, or its sampler gives it a share of the data only;
        the message names `method`.
    """
    if isinstance(loader, DataLoader | torch_data.DataLoader):
        check_unshared(f"{method}() returned a loader", loader)
        return loader if isinstance(loader, DataLoader) else DataLoader.from_torch(loader)
    raise InvalidDataError(
        f"{method}() must return a det.pytorch.DataLoader or a torch.utils.data.DataLoader, not "
        f"{type(loader).__name__}."
    )

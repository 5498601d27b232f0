"""Training batches of iterable datasets: continued by reading the current pass again from its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.data as torch_data

from det_native.errors import TrialDefinitionError
from det_native.pytorch.samplers import own_generators, seed_for


class StreamLoader:
    """Yields the batches of one replica of an iterable dataset.

    Every pass over the dataset runs under random number generators seeded for the trial and the pass, so that reading
    it again gives the same batches. With several replicas each one reads everything and yields every n-th batch.

    Parameters
    ----------
    make_pass : callable
        Makes the torch loader of a pass: takes the generator that loader workers are seeded from.
    dataset : IterableDataset
    length : int or None
        Batches of a pass, if the dataset knows.
    repeat : bool
        Go on for ever.
    start : (int, int)
        Pass, and batches of it that the first replica has read when it took its last one.
    skip : int
        Batches to read and drop after that.
    draw_seed : callable, optional
        Is called at the beginning of each pass: see :func:`draw_base_seed`.
    """

    def __init__(
        self,
        make_pass: Callable[[torch.Generator], torch_data.DataLoader[Any]],
        dataset: Any,
        *,
        seed: int,
        length: int | None,
        repeat: bool,
        start: tuple[int, int],
        skip: int,
        num_replicas: int,
        draw_seed: Callable[[], None] | None = None,
    ) -> None:
        self._make_pass = make_pass
        self._dataset = dataset
        self._seed = seed
        self._length = length
        self._repeat = repeat
        self._start = start
        self._skip = skip
        self._num_replicas = num_replicas
        self._draw_seed = draw_seed

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError(f"{type(self._dataset).__name__} has no length")
        return -(-self._length // self._num_replicas)

    def __iter__(self) -> StreamBatches:
        return StreamBatches(self)

    def batches(self) -> Iterator[tuple[tuple[int, int], Any]]:
        """Yield the replica's batches, each with its pass and its number in it, from 1."""
        first_pass, dropped = self._start
        number, wanted = first_pass, self._skip
        while True:
            empty = True
            if self._draw_seed is not None and not dropped:
                self._draw_seed()
            for index, batch in enumerate(self._one_pass(number), 1):
                empty = False
                if index <= dropped:
                    continue
                if wanted:
                    wanted -= 1
                    continue
                wanted = self._num_replicas - 1
                yield (number, index), batch
            if not self._repeat:
                return
            if empty:
                raise TrialDefinitionError(
                    f"{type(self._dataset).__name__} yields no batches: the training data are empty."
                )
            number, dropped = number + 1, 0

    def _one_pass(self, number: int) -> Iterator[Any]:
        seed = seed_for(self._seed, number)
        set_epoch = getattr(self._dataset, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(number)
        own = getattr(self._dataset, "generator", None)
        if isinstance(own, torch.Generator):
            own.manual_seed(seed)
        loader = self._make_pass(torch.Generator().manual_seed(seed))
        if loader.num_workers > 0:
            yield from loader
            return
        # Without workers the dataset draws from this process's generators: it gets its own, around every batch.
        iterator: Iterator[Any] | None = None
        state: dict[str, Any] | None = None
        while True:
            with own_generators(seed, state) as after:
                if iterator is None:
                    iterator = iter(loader)
                batch = next(iterator, _END)
            if batch is _END:
                return
            state = after
            yield batch


class StreamBatches:
    """Iterator over a :class:`StreamLoader`.

    Attributes
    ----------
    position : (int, int)
        Where to start again: the pass and the number of the last batch.
    """

    def __init__(self, loader: StreamLoader) -> None:
        self._batches = loader.batches()
        self.position = loader._start

    def __iter__(self) -> StreamBatches:
        return self

    def __next__(self) -> Any:
        self.position, batch = next(self._batches)
        return batch


def draw_base_seed(loader: Any) -> None:
    """Draw what each of torch's iterators draws first, to seed loader workers, from where it is drawn in torch."""
    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)


_END = object()

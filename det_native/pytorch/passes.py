"""Training batches as plain torch gives them: one pass over the user's loader after the other, continued at any batch.

A pass draws its order from the global random numbers, or from a generator of the loader, when it begins. What these
were then goes into checkpoints: a later process begins the same pass again, steps over the batches that were trained on
without loading them, and puts the random numbers back.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice
from typing import Any

import torch

from det_native.errors import TrialDefinitionError
from det_native.process.streams import current_streams, decoded, encoded, put_back
from det_native.pytorch.samplers import enter_epoch, own_generators, seed_for

_CHUNK = 128
_END = object()
_LIBRARIES = ("random", "numpy", "torch")
_STREAMS = ("python", "numpy", "torch")


class Passes:
    """Iterator over the training batches of one slot, without end.

    Parameters
    ----------
    make_loader : callable
        Makes the torch loader that is iterated once for each pass, with what stands for its sampler.
    sampler : sampler or batch sampler
        The user's.
    repeatable : bool
        Whether an order depends on nothing but the random numbers; else the orders of earlier passes are drawn once
        more before a pass is continued, since the sampler may keep something from one to the next.
    generators : dict
        The loaders' own generators, by name.
    numbered : callable, optional
        Makes, of a batch's number since the start of the training and an item, what the loader is given for it.
    seed : int
        For what a sampler draws after its first item.
    done : int
        Batches that are done.
    position : dict, optional
        What :attr:`position` was then.
    """

    def __init__(
        self,
        make_loader: Callable[[Any], Iterable[Any]],
        sampler: Any,
        *,
        repeatable: bool,
        generators: Mapping[str, torch.Generator],
        seed: int,
        numbered: Callable[[int, Any], Any] | None = None,
        done: int = 0,
        position: Mapping[str, Any] | None = None,
    ) -> None:
        self._items = PassItems(sampler, seed, numbered)
        self._loader = make_loader(self._items)
        self._generators = generators
        self._iterator: Iterator[Any] | None = None
        self._start: dict[str, Any] | None = None
        self._number = self._taken = 0
        self._done = done
        if position is not None:
            self._resume(position, repeatable=repeatable)

    def __iter__(self) -> Passes:
        return self

    def __next__(self) -> Any:
        while True:
            if self._iterator is None:
                self._start, self._taken = self._random_state(), 0
                self._begin()
            assert self._iterator is not None
            batch = next(self._iterator, _END)
            if batch is not _END:
                self._taken += 1
                self._done += 1
                return batch
            if not self._taken:
                raise TrialDefinitionError(
                    "The training data loader yields no batches; its dataset or sampler is empty."
                )
            self._iterator = None
            self._number += 1

    @property
    def position(self) -> dict[str, Any]:
        """Where to start again, fit for JSON."""
        return {
            "pass": self._number,
            "taken": self._taken,
            "start": self._start,
            "generators": states_of(self._generators),
        }

    def _begin(self) -> None:
        self._items.begin_pass(self._number, first=self._done, skip=self._taken)
        self._iterator = iter(self._loader)
        self._items.step_over()

    def _random_state(self) -> dict[str, Any]:
        streams = {name: state for name, state in current_streams().items() if name in _STREAMS}
        return {"streams": encoded(streams).decode(), "generators": states_of(self._generators)}

    def _put_back(self, state: Mapping[str, Any]) -> None:
        put_back(decoded(state["streams"].encode()), _LIBRARIES)
        set_states(self._generators, state["generators"])

    def _resume(self, position: Mapping[str, Any], *, repeatable: bool) -> None:
        outside = self._random_state()
        if not repeatable:
            for number in range(position["pass"]):
                self._items.begin_pass(number, first=0, skip=0)
                for _ in self._items:
                    pass
        self._number, self._taken, self._start = position["pass"], position["taken"], position["start"]
        if self._start is not None:
            self._put_back(self._start)
            self._begin()
        self._put_back(outside)
        set_states(self._generators, position["generators"])


class PassItems:
    """What stands for the user's sampler: its items, pass after pass.

    The first item is drawn as in plain torch, from what the training draws from. A sampler that goes on to draw does so
    from random numbers of its own, so that its items do not depend on what is drawn in between.

    Parameters
    ----------
    sampler : sampler or batch sampler
    numbered : callable, optional
    """

    def __init__(self, sampler: Any, seed: int, numbered: Callable[[int, Any], Any] | None = None) -> None:
        self._sampler = sampler
        self._seed = seed
        self._numbered = numbered
        self._number = self._first = self._skip = 0
        self._latest: _Stepping | None = None

    def __len__(self) -> int:
        return len(self._sampler)

    def begin_pass(self, number: int, *, first: int, skip: int) -> None:
        """Make ready for a pass of which `skip` items are stepped over; the next one is number `first` of all."""
        self._number, self._first, self._skip = number, first, skip
        self._latest = None
        enter_epoch(self._sampler, number)

    def step_over(self) -> None:
        """Step over items now, if nobody has asked for the first one yet."""
        if self._latest is not None:
            self._latest.step_over()

    def __iter__(self) -> Iterator[Any]:
        self._latest = latest = _Stepping(self._drawn(iter(self._sampler)), self._skip)
        return latest if self._numbered is None else map(self._numbered, count(self._first), latest)

    def _drawn(self, items: Iterator[Any]) -> Iterator[Any]:
        seed, state = seed_for(self._seed, self._number), None
        chunk = list(islice(items, 1))
        more = bool(chunk)
        while chunk:
            if more:  # before the last item is given: a sampler that draws at its end does so in its own pass
                with own_generators(seed, state) as state:
                    further = list(islice(items, _CHUNK))
                more = len(further) == _CHUNK
                yield from chunk
                chunk = further
            else:
                yield from chunk
                return


class _Stepping(Iterator[Any]):
    """Items without the first `skip` ones."""

    def __init__(self, items: Iterator[Any], skip: int) -> None:
        self._items = items
        self._skip = skip

    def __next__(self) -> Any:
        self.step_over()
        return next(self._items)

    def step_over(self) -> None:
        skip, self._skip = self._skip, 0
        for _ in islice(self._items, skip):
            pass


def generators_of(loader: Any) -> dict[str, torch.Generator]:
    """Return the generators that the parts of a torch loader have of their own, by name."""
    batches = loader.batch_sampler
    parts = {
        "loader": loader,
        "sampler": getattr(loader, "sampler", None),
        "batch_sampler": batches,
        "batch_sampler.sampler": getattr(batches, "sampler", None),
        "dataset": loader.dataset,
    }
    found = {name: getattr(part, "generator", None) for name, part in parts.items()}
    return {name: generator for name, generator in found.items() if isinstance(generator, torch.Generator)}


def states_of(generators: Mapping[str, torch.Generator]) -> dict[str, str]:
    """Return the states of generators, fit for JSON."""
    return {
        name: base64.b64encode(generator.get_state().numpy().tobytes()).decode()
        for name, generator in generators.items()
    }


def set_states(generators: Mapping[str, torch.Generator], states: Mapping[str, str]) -> None:
    """Put back what :func:`states_of` returned, as far as the generators are there."""
    for name, generator in generators.items():
        if name in states:
            words = bytearray(base64.b64decode(states[name]))
            generator.set_state(torch.frombuffer(words, dtype=torch.uint8))


@contextmanager
def unchanged(generators: Mapping[str, torch.Generator]) -> Iterator[None]:
    """Leave generators after the block as they were before it."""
    states = states_of(generators)
    try:
        yield
    finally:
        set_states(generators, states)

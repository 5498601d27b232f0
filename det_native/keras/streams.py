"""A generator whose batches do not depend on when they are pulled, so that a resumed run can pull them again."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

GlobalState = tuple[Any, Any]

# The global generators of a process are swapped by one thread at a time.
_swapping = threading.RLock()


def global_state() -> GlobalState:
    """Return the state of the global generators of Python and numpy."""
    return random.getstate(), np.random.get_state(legacy=False)


@contextmanager
def swapped_state(state: GlobalState) -> Iterator[list[GlobalState]]:
    """Run the block with `state` in the global generators of Python and numpy; put the former one back.

    The list holds, after the block, the state in which the block left them.
    """
    left: list[GlobalState] = []
    with _swapping:
        outer = global_state()
        _set(state)
        try:
            yield left
        finally:
            left.append(global_state())
            _set(outer)


def same_states(one: GlobalState | None, other: GlobalState | None) -> bool:
    """Return whether two states give the same numbers."""
    if one is None or other is None:
        return one is other
    return one[0] == other[0] and _same_numpy(one[1], other[1])


def go_on_from(begun: GlobalState | None, ended: GlobalState) -> None:
    """Have each global generator that is still as it has begun go on where a copy of it has ended."""
    with _swapping:
        now = global_state()
        if begun is None or now[0] == begun[0]:
            random.setstate(ended[0])
        if begun is None or _same_numpy(now[1], begun[1]):
            np.random.set_state(ended[1])


def _same_numpy(one: Any, other: Any) -> bool:
    same = all(one[name] == other[name] for name in ("bit_generator", "has_gauss", "gauss"))
    return same and pickle.dumps(one["state"]) == pickle.dumps(other["state"])


def seeded_state(*entropy: int) -> GlobalState:
    """Return the state of the two generators that follows from whole numbers, without touching the global ones."""
    words = np.random.SeedSequence(entropy).generate_state(2)
    return random.Random(int(words[0])).getstate(), np.random.RandomState(int(words[1])).get_state(legacy=False)


def _beside(state: GlobalState) -> GlobalState:
    """Return a state that follows from another one, and is not on its way."""
    with swapped_state(state):
        words = np.random.randint(2**31, size=2)
    return seeded_state(*map(int, words))


def _set(state: GlobalState) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])


class ReplayableStream:
    """The user's generator, pulled with random numbers of its own.

    Keras reads ahead in a thread of its own: with the process's random numbers, a generator that draws some would give
    other batches in every run. Here it draws from a copy that starts as the process's stood when ``fit`` was called,
    so batch number n is the same in every run of the same program.

    Parameters
    ----------
    generator : iterator
    apart : bool
        Draw other random numbers than a stream without it that begins at the same moment.

    Attributes
    ----------
    error : BaseException or None
        What the generator raised; TensorFlow passes on only its text.
    """

    def __init__(self, generator: Iterator[Any], *, apart: bool = False) -> None:
        self._generator = generator
        self._state = _beside(global_state()) if apart else global_state()
        self._ahead: list[Any] = []
        self.error: BaseException | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._ahead.pop(0) if self._ahead else self._pull()

    def peek(self) -> Any:
        """Return the next batch without taking it."""
        if not self._ahead:
            self._ahead.append(self._pull())
        return self._ahead[0]

    def skip(self, batches: int) -> int:
        """Take batches and drop them; return how many there were."""
        for done in range(batches):
            try:
                next(self)
            except StopIteration:
                return done
        return batches

    def _pull(self) -> Any:
        left: list[GlobalState] = []
        try:
            with swapped_state(self._state) as left:
                return next(self._generator)
        except StopIteration:
            raise
        except BaseException as error:
            self.error = error
            raise
        finally:
            if left:
                self._state = left[0]

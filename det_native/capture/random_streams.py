"""Which global streams of random numbers a cell has drawn from or seeded, by their states before and after it."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from det_native.capture.events import Stream

_WORDS = 624  # of the state of a Mersenne twister; it has used none of them yet once it is seeded


class State(NamedTuple):
    """Where a stream is.

    Attributes
    ----------
    number : int
        Another once something was drawn.
    fresh : bool
        Nothing was drawn since it was seeded, by the look of it.
    """

    number: int
    fresh: bool


def _of_random(random: Any) -> State:
    _, words, gauss = state = random.getstate()
    return State(hash(state), words[-1] == _WORDS and gauss is None)


def _of_numpy(numpy: Any) -> State:
    return _of_twister(numpy.random)


def _of_twister(generator: Any) -> State:
    state = generator.get_state(legacy=False)
    inner = {name: getattr(value, "tobytes", lambda value=value: value)() for name, value in state["state"].items()}
    fresh = inner.get("pos") == _WORDS and not state.get("has_gauss")
    return State(hash((tuple(inner.items()), state.get("has_gauss"), state.get("gauss"))), fresh)


def _of_torch(torch: Any) -> State:
    state = torch.get_rng_state().numpy().tobytes()
    left, _, position = struct.unpack_from("<iiq", state, 8)  # after the seed
    return State(hash(state), (left, position) == (1, 0))


def state_of_generator(generator: Any) -> int | None:
    """Return a number that is another once something was drawn; None where it would have to be asked of a device."""
    if hasattr(generator, "bit_generator"):
        return zlib.crc32(repr(generator.bit_generator.state).encode())
    if hasattr(generator, "getstate"):
        return hash(generator.getstate())
    if hasattr(generator, "device"):
        return zlib.crc32(generator.get_state().numpy()) if generator.device.type == "cpu" else None
    return _of_twister(generator).number


#: TensorFlow has none to look at: each operation takes its own seed from a counter.
_STATES: dict[Stream, Callable[[Any], State]] = {"random": _of_random, "numpy": _of_numpy, "torch": _of_torch}


def stream_states() -> dict[Stream, State]:
    """Return the state of each stream of a library that is loaded."""
    states: dict[Stream, State] = {}
    for stream, state in _STATES.items():
        library = sys.modules.get(stream)
        if library is not None:
            with suppress(Exception):  # a library that is only half loaded, or whose generator was replaced
                states[stream] = state(library)
    return states

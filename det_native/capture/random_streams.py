"""Which global streams of random numbers a cell has drawn from, seen from their states before and after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from det_native.capture.events import Stream


def _of_random(random: Any) -> int:
    return hash(random.getstate())


def _of_numpy(numpy: Any) -> int:
    state = numpy.random.get_state(legacy=False)
    inner = {name: getattr(value, "tobytes", lambda value=value: value)() for name, value in state["state"].items()}
    return hash((tuple(inner.items()), state.get("has_gauss"), state.get("gauss")))


def _of_torch(torch: Any) -> int:
    return hash(torch.get_rng_state().numpy().tobytes())


#: TensorFlow has none to look at: each operation takes its own seed from a counter.
_STATES: dict[Stream, Callable[[Any], int]] = {"random": _of_random, "numpy": _of_numpy, "torch": _of_torch}


def stream_states() -> dict[Stream, int]:
    """Return a number for each stream of a library that is loaded; it is another once something was drawn."""
    states: dict[Stream, int] = {}
    for stream, state in _STATES.items():
        library = sys.modules.get(stream)
        if library is not None:
            with suppress(Exception):  # a library that is only half loaded, or whose generator was replaced
                states[stream] = state(library)
    return states

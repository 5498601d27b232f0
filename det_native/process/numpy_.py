"""NumPy's global stream."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import _LazyModule  # type: ignore[attr-defined]
from typing import Any

from det_native.process.stream import State, Stream


def _read_stream() -> State | None:
    random = sys.modules.get("numpy.random")
    if random is None or isinstance(random, _LazyModule):  # a lazy one would be loaded by being asked
        return None
    name, words, position, has_gauss, gauss = random.get_state()
    plain = [name, int(position), int(has_gauss), float(gauss)]
    return {"numpy": plain, "numpy_words": ("uint32", words.tobytes())}


def _put_back_stream(states: Mapping[str, Any]) -> None:
    name, position, has_gauss, cached = states["numpy"]
    sys.modules["numpy.random"].set_state((name, states["numpy_words"], position, has_gauss, cached))


STREAMS = (Stream("numpy", _read_stream, _put_back_stream, begins="numpy.random"),)

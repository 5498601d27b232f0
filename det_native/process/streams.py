"""States of the global streams of random numbers: noted before cells and in checkpoints, put back where they go on.

What counts names (``auc``, ``auc_1``) is noted before cells, too: it moves as a stream does.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from det_native.process import keras_, numpy_, tensorflow_, torch_
from det_native.process.stream import Stream, generator_stream, is_loaded

_STREAMS: Mapping[str, tuple[Stream, ...]] = {
    "numpy": numpy_.STREAMS,
    "torch": torch_.STREAMS,
    "tensorflow": tensorflow_.STREAMS,
    "keras": keras_.STREAMS,
    "tf_keras": keras_.STREAMS,
    "random": (generator_stream("python", lambda: random._inst),),
}
_BY_NAME = {stream.name: stream for streams in _STREAMS.values() for stream in streams}


def current_streams() -> dict[str, Any]:
    """Return the state of every stream of a library that is loaded."""
    states = ((stream.name, stream.state()) for stream in _streams())
    return {name: state for name, state in states if state is not None}


def beginnings() -> tuple[str, ...]:
    """Return the modules whose first import begins a stream.

    Those of TensorFlow and Keras begin when they are seeded: without a seed Keras draws from Python's, and TensorFlow
    from what nobody can restore.
    """
    return tuple(stream.begins for stream in _BY_NAME.values() if stream.begins)


def stream_of(module: str) -> dict[str, Any]:
    """Return the state of the stream that one of :func:`beginnings` has begun; nothing if it is not loaded."""
    states = ((stream.name, stream.state()) for stream in _streams() if stream.begins == module)
    return {name: state for name, state in states if state is not None}


def encoded(states: Mapping[str, Any]) -> bytes:
    """Return states as JSON, with arrays in base64."""
    written = {
        name: {value[0]: base64.b64encode(value[1]).decode()} if isinstance(value, tuple) else value
        for state in states.values()
        for name, value in (state or {}).items()
    }
    return json.dumps(written, sort_keys=True).encode()


def decoded(content: bytes) -> dict[str, Any]:
    """Return what :func:`encoded` has written, in one dictionary with arrays of numpy."""
    states: dict[str, Any] = json.loads(content)
    for name, value in states.items():
        if isinstance(value, dict):
            ((kind, text),) = value.items()
            states[name] = _array(kind, base64.b64decode(text))
    return states


def counters(states: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some states that only count, to make names; random numbers are left out."""
    return {name: state for name, state in states.items() if name in _BY_NAME and _BY_NAME[name].counts}


def checkpointed(libraries: Iterable[str]) -> dict[str, Any]:
    """Return what :func:`decoded` does, of the streams of these libraries, as far as they are loaded."""
    drawn = [stream for stream in _streams(frozenset(libraries)) if not stream.counts]
    values = (pair for stream in drawn for pair in (stream.read() or {}).items())
    return {name: _array(*value) if isinstance(value, tuple) else value for name, value in values}


def put_back(states: Mapping[str, Any], libraries: Iterable[str]) -> None:
    """Put back what :func:`checkpointed` has returned, of the streams of these libraries, as far as they are loaded."""
    for stream in _streams(frozenset(libraries)):
        if stream.name in states:
            stream.put_back(states)


def _array(kind: str, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, dtype=np.dtype(kind).newbyteorder("<"))


def _streams(libraries: frozenset[str] | None = None) -> list[Stream]:
    loaded = [name for name in _STREAMS if is_loaded(name) and (libraries is None or name in libraries)]
    return list(dict.fromkeys(stream for name in loaded for stream in _STREAMS[name]))

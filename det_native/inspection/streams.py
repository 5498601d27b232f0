"""States of the global streams of random numbers: noted before cells and in checkpoints, put back where they go on.

What counts names (``auc``, ``auc_1``) is noted before cells, too: it moves as a stream does.

A stream has its state in a short form, to be noted and compared often, and in the form of checkpoints: plain numbers
and arrays, by names that begin with the stream's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from det_native.inspection.adapter import Library, Stream
from det_native.inspection.registry import LIBRARIES, library_of, loaded_libraries


def current_streams() -> dict[str, Any]:
    """Return the state of every stream of a library that is loaded, in the short form."""
    states = ((stream.name, stream.state()) for stream in _streams())
    return {name: state for name, state in states if state is not None}


def beginnings() -> tuple[str, ...]:
    """Return the modules whose first import begins a stream.

    Those of TensorFlow and Keras begin when they are seeded: without a seed Keras draws from Python's, and TensorFlow
    from what nobody can restore.
    """
    return tuple(stream.begins for library in _libraries() for stream in library.streams if stream.begins)


def stream_of(module: str) -> dict[str, Any]:
    """Return the state of the stream that one of :func:`beginnings` has begun; nothing if it is not loaded."""
    states = ((stream.name, stream.state()) for stream in _streams() if stream.begins == module)
    return {name: state for name, state in states if state is not None}


def encoded(states: Mapping[str, Any]) -> bytes:
    """Return states as JSON, in the form of checkpoints, with arrays in base64."""
    written = {
        name: {value[0]: base64.b64encode(value[1]).decode()} if isinstance(value, tuple) else value
        for name, value in _written(states).items()
    }
    return json.dumps(written, sort_keys=True).encode()


def decoded(content: bytes) -> dict[str, Any]:
    """Return what :func:`encoded` has written, in the form of checkpoints."""
    states: dict[str, Any] = json.loads(content)
    for name, value in states.items():
        if isinstance(value, dict):
            ((kind, text),) = value.items()
            states[name] = _array(kind, base64.b64decode(text))
    return states


def counters(states: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some states that only count, to make names; random numbers are left out."""
    names = {stream.name for library in _libraries() for stream in library.streams if stream.counts}
    return {name: state for name, state in states.items() if name in names}


def checkpointed(libraries: Iterable[str]) -> dict[str, Any]:
    """Return the states of the streams of these libraries, as far as they are loaded, in the form of checkpoints."""
    drawn = [stream for stream in _streams(frozenset(libraries)) if not stream.counts]
    written = _written({stream.name: stream.read() for stream in drawn})
    return {name: _array(*value) if isinstance(value, tuple) else value for name, value in written.items()}


def put_back(states: Mapping[str, Any], libraries: Iterable[str]) -> None:
    """Put states back, in the form of checkpoints, of the streams of these libraries, as far as they are loaded."""
    for stream in _streams(frozenset(libraries)):
        if stream.name in states:
            stream.put_back(states)


def _written(states: Mapping[str, Any]) -> dict[str, Any]:
    by_name = {stream.name: stream for library in _libraries() for stream in library.streams}
    found: dict[str, Any] = {}
    for name, state in states.items():
        if state is not None:
            found |= by_name[name].written(state)
    return found


def _array(kind: str, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, dtype=np.dtype(kind).newbyteorder("<"))


def _libraries() -> list[Library]:
    known = {LIBRARIES[package]: library_of(package) for package in LIBRARIES}
    return [library for library in known.values() if library is not None]


def _streams(libraries: frozenset[str] | None = None) -> list[Stream]:
    found = [library.streams for name, _, library in loaded_libraries() if libraries is None or name in libraries]
    return list(dict.fromkeys(stream for streams in found for stream in streams))

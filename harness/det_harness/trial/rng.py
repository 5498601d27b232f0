"""Seeding, saving and restoring the random number generators of a process."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from det_harness.frameworks.base import RandomStreams, harness_of
from det_native.capture.first_imports import first_imports
from det_native.frameworks import read_frameworks
from det_native.process.streams import checkpointed, counters, decoded, put_back

_FILE = "rng.npz"
# What every process has, whatever its framework.
_ALWAYS = ("random", "numpy")

# States for frameworks that this process has not imported, by their names.
_waiting: dict[str, dict[str, Any]] = {}


def seed_all(seed: int) -> None:
    """Seed the global generators of Python, numpy and the imported frameworks, but for what cannot be put back."""
    _seed(seed, own_process=False)


def seed_process(seed: int) -> None:
    """Seed everything in a worker's own process."""
    _seed(seed, own_process=True)


def begin(seed: int) -> None:
    """Seed in a process what draws what nobody can draw again as long as it has no seed; all else stays as it is."""
    for streams in _streams():
        streams.begin(seed)


def _seed(seed: int, *, own_process: bool) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    for streams in _streams():
        streams.seed(seed, own_process=own_process)


def _streams() -> list[RandomStreams]:
    """Return those of the frameworks that this process has imported."""
    names = [one.name for one in read_frameworks() if one.harness and one.module in sys.modules]
    return [harness_of(name).streams for name in names]


def capture() -> dict[str, Any]:
    """Return the state of the global generators as plain numbers and arrays.

    Returns
    -------
    dict
        ``python`` (version, gauss), ``python_words`` (uint32, 625), ``numpy`` (name, position, has_gauss, gauss),
        ``numpy_words`` (uint32, 624), and what the streams of each imported framework have.
    """
    state = checkpointed(_ALWAYS)
    for streams in _streams():
        state |= streams.capture()
    return state


def apply(state: dict[str, Any]) -> None:
    """Put back what :func:`capture` returned; generators that the state lacks stay as they are."""
    put_back(state, _ALWAYS)
    for streams in _streams():
        streams.apply(state)


def apply_encoded(content: bytes, *, only_names: bool = False) -> None:
    """Put back states that a notebook has sent (``det_native.process.streams``).

    Those of a framework that the program has yet to import are put back when it has. With `only_names`, what is drawn
    stays as it is, and only what counts names is put back.
    """
    state = counters(decoded(content)) if only_names else decoded(content)
    apply(state)
    for framework in read_frameworks():
        if framework.harness and framework.module not in sys.modules:
            _waiting[framework.name] = state
            first_imports.call_after(framework.module, partial(_apply_waiting, framework.name))


def _apply_waiting(framework: str) -> None:
    state = _waiting.pop(framework, None)
    if state is not None:
        harness_of(framework).streams.apply(state)


def save(folder: Path, state: dict[str, Any] | None = None) -> None:
    """Write the state of the generators into a checkpoint's folder: the present one, or what `capture` returned."""
    state = capture() if state is None else state
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    np.savez(folder / _FILE, plain=np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8), **arrays)


def load(folder: Path) -> None:
    """Put back the state that :func:`save` wrote; nothing happens if the checkpoint has none."""
    state = read(folder)
    if state is not None:
        apply(state)


def read(folder: Path) -> dict[str, Any] | None:
    """Return the state that :func:`save` wrote; None if the checkpoint has none."""
    if not (folder / _FILE).exists():
        return None
    with np.load(folder / _FILE, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    state: dict[str, Any] = json.loads(arrays.pop("plain").tobytes())
    return {**state, **arrays}


@contextmanager
def preserved() -> Iterator[None]:
    """Leave the global generators after the block as they were before it."""
    state = capture()
    try:
        yield
    finally:
        apply(state)

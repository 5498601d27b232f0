"""Seeding, saving and restoring the random number generators of a process."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_FILE = "rng.npz"


def seed_all(seed: int) -> None:
    """Seed the global generators of Python, numpy and, if it is imported, torch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def seed_process(seed: int) -> None:
    """Seed everything in a worker's own process: TensorFlow's global seed too, which cannot be put back elsewhere."""
    seed_all(seed)
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.random.set_seed(seed)


def capture() -> dict[str, Any]:
    """Return the state of the global generators as plain numbers and arrays.

    Returns
    -------
    dict
        ``python`` (version, gauss), ``python_words`` (uint32, 625), ``numpy`` (name, position, has_gauss, gauss),
        ``numpy_words`` (uint32, 624); if torch is imported, ``torch`` (uint8) and ``cuda`` (list of uint8 arrays); if
        TensorFlow's global seed is set, ``tensorflow`` (version, gauss) and ``tensorflow_words`` (uint32, 625): the
        generator of the seeds of its eager operations.
    """
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    state: dict[str, Any] = {
        "python": [version, gauss],
        "python_words": np.array(words, dtype=np.uint32),
        "numpy": [name, int(position), int(has_gauss), float(cached)],
        "numpy_words": np.array(keys, dtype=np.uint32),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = torch.get_rng_state().numpy().copy()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = [generator.numpy().copy() for generator in torch.cuda.get_rng_state_all()]
    eager = _eager_seeds()
    if eager is not None:
        version, words, gauss = eager.getstate()
        state |= {"tensorflow": [version, gauss], "tensorflow_words": np.array(words, dtype=np.uint32)}
    return state


def apply(state: dict[str, Any]) -> None:
    """Put back what :func:`capture` returned; generators that the state lacks stay as they are."""
    version, gauss = state["python"]
    random.setstate((version, tuple(int(word) for word in state["python_words"]), gauss))
    name, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, state["numpy_words"], position, has_gauss, cached))
    _apply_eager_seeds(state)
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if "torch" in state:
        torch.set_rng_state(torch.from_numpy(state["torch"].copy()))
    if "cuda" in state and torch.cuda.is_available():
        for device, generator in enumerate(state["cuda"][: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(torch.from_numpy(generator.copy()), device)


def _eager_seeds() -> random.Random | None:
    """Return the generator that gives TensorFlow's eager operations their seeds, None where there is none."""
    context = sys.modules.get("tensorflow.python.eager.context")
    generator = getattr(context.context(), "_rng", None) if context is not None else None
    return generator if isinstance(generator, random.Random) else None


def _apply_eager_seeds(state: dict[str, Any]) -> None:
    eager = _eager_seeds()
    if eager is None or "tensorflow" not in state:
        return
    version, gauss = state["tensorflow"]
    eager.setstate((version, tuple(int(word) for word in state["tensorflow_words"]), gauss))
    # As tf.random.set_seed() does: an operation that is kept for a seed has drawn from it already.
    sys.modules["tensorflow.python.eager.context"].context().clear_kernel_cache()


def save(folder: Path) -> None:
    """Write the state of the generators into a checkpoint's folder."""
    state = capture()
    cuda = state.pop("cuda", [])
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    arrays.update({f"cuda_{device}": value for device, value in enumerate(cuda)})
    plain = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    np.savez(folder / _FILE, plain=np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8), **arrays)


def load(folder: Path) -> None:
    """Put back the state that :func:`save` wrote; nothing happens if the checkpoint has none."""
    if not (folder / _FILE).exists():
        return
    with np.load(folder / _FILE, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    state: dict[str, Any] = json.loads(arrays.pop("plain").tobytes())
    devices = sorted((name for name in arrays if name.startswith("cuda_")), key=lambda name: int(name[5:]))
    cuda = [arrays.pop(name) for name in devices]
    apply({**state, **arrays, **({"cuda": cuda} if cuda else {})})


@contextmanager
def preserved() -> Iterator[None]:
    """Leave the global generators after the block as they were before it."""
    state = capture()
    try:
        yield
    finally:
        apply(state)

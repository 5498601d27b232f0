"""States of the global streams of random numbers, kept for the cells that draw: a replay begins them from there."""

from __future__ import annotations

import array
import base64
import json
import random as python_random
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import _LazyModule  # type: ignore[attr-defined]
from typing import Any

#: Modules whose first import begins a stream. Python's own is always there, and those of TensorFlow and Keras begin
#: when they are seeded: without a seed Keras draws from Python's, and TensorFlow from what nobody can restore.
BEGINNINGS = ("numpy.random", "torch")

_EAGER = "tensorflow.python.eager.context"
_KERAS_3 = "keras.src.backend.common.global_state"  # there is nothing public that tells its stream
_KERAS = ("keras.src.backend", "tf_keras.src.backend", "tensorflow.python.keras.backend")


def current_streams() -> dict[str, Any]:
    """Return the state of every stream of a library that is loaded, as its library gives it."""
    states: dict[str, Any] = {"python": _compact(python_random)}
    for module in BEGINNINGS:
        states |= stream_of(module)
    seed = _seed_of_tensorflow()
    if seed is not None:
        states["tensorflow_seed"] = seed
    of_keras_3 = _of_keras_3()
    if of_keras_3 is not None:
        states["keras_3"] = of_keras_3
    for name, generator in (("tensorflow", _of_tensorflow()), ("keras", _of_keras())):
        if generator is not None:
            states[name] = _compact(generator)
    return states


def stream_of(module: str) -> dict[str, Any]:
    """Return the state of the stream that one of :data:`BEGINNINGS` has begun; nothing if it is not loaded."""
    loaded = sys.modules.get(module)
    if loaded is None or isinstance(loaded, _LazyModule):  # a lazy one would be loaded by being asked
        return {}
    with suppress(Exception):  # a library that is only half loaded, or whose generator was replaced
        return _READERS[module](loaded)
    return {}


def encoded(states: dict[str, Any]) -> bytes:
    """Return states as JSON, with the names and forms of ``det_harness.trial.rng.capture``."""
    written: dict[str, Any] = {}
    for name, state in states.items():
        if name in ("tensorflow_seed", "keras_3"):
            written[name] = state
        elif name == "torch":
            written[name] = {"uint8": base64.b64encode(state).decode()}
        elif name == "numpy":
            written[name], written["numpy_words"] = state[0], {"uint32": base64.b64encode(state[1]).decode()}
        else:
            version, words, gauss = state
            written[name] = [version, gauss]
            written[f"{name}_words"] = {"uint32": base64.b64encode(words).decode()}
    return json.dumps(written, sort_keys=True).encode()


def _compact(generator: Any) -> tuple[int, bytes, float | None]:
    """Return the state of a generator of Python's in 2.5 kB; its own form, of whole numbers, has 20."""
    version, words, gauss = generator.getstate()
    return version, array.array("I", words).tobytes(), gauss


def _of_numpy(random: Any) -> dict[str, Any]:
    name, words, position, has_gauss, gauss = random.get_state()
    return {"numpy": ([name, int(position), int(has_gauss), float(gauss)], words.tobytes())}


def _of_torch(torch: Any) -> dict[str, Any]:
    return {"torch": torch.get_rng_state().numpy().tobytes()}


_READERS: dict[str, Callable[[Any], dict[str, Any]]] = {"numpy.random": _of_numpy, "torch": _of_torch}


def _of_tensorflow() -> python_random.Random | None:
    """Return what gives TensorFlow's eager operations their seeds; None without a global seed."""
    module = sys.modules.get(_EAGER)
    with suppress(Exception):
        found = getattr(module.context(), "_rng", None) if module is not None else None
        return found if isinstance(found, python_random.Random) else None
    return None


def _seed_of_tensorflow() -> int | None:
    """Return TensorFlow's global seed."""
    module = sys.modules.get(_EAGER)
    with suppress(Exception):
        found = getattr(module.context(), "_seed", None) if module is not None else None
        return found if isinstance(found, int) else None
    return None


def _of_keras() -> python_random.Random | None:
    """Return what gives the initializers of Keras their seeds; None without a seed of Keras."""
    for name in _KERAS:
        generator = getattr(getattr(sys.modules.get(name), "_SEED_GENERATOR", None), "generator", None)
        if isinstance(generator, python_random.Random):
            return generator
    return None


def _of_keras_3() -> list[Any] | None:
    """Return the seed of Keras 3 and the state of what gives ``keras.random`` its seeds; None before either is used."""
    module = sys.modules.get(_KERAS_3)
    if module is None:
        return None
    with suppress(Exception):
        seed, generator = (module.get_global_attribute(f"global_{name}") for name in ("random_seed", "seed_generator"))
        if seed is None and generator is None:
            return None
        state = None if generator is None else sys.modules["keras"].ops.convert_to_numpy(generator.state).tolist()
        return [seed, state]
    return None

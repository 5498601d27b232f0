"""The global streams of seeds of TensorFlow and Keras."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from det_harness.frameworks.base import RandomStreams

_KERAS_3 = "keras.src.backend.common.global_state"  # there is nothing public that tells its stream
_EAGER = "tensorflow.python.eager.context"


class TensorFlowStreams(RandomStreams):
    """``tensorflow`` (version, gauss) and ``tensorflow_words`` (uint32, 625), if the global seed is set.

    They are of the generator that gives eager operations their seeds. ``keras`` and ``keras_words`` likewise, of the
    one that gives initializers theirs, if Keras has a seed. ``keras_3`` is the seed of Keras 3, and the state of what
    gives ``keras.random`` its seeds where it is not told any.
    """

    def seed(self, seed: int, *, own_process: bool) -> None:
        """Set the global seed of a worker's own process; elsewhere it cannot be put back."""
        if own_process:
            sys.modules["tensorflow"].random.set_seed(seed)

    def capture(self) -> dict[str, Any]:
        """Return their states."""
        state: dict[str, Any] = {}
        for name, generator in (("tensorflow", _eager_seeds()), ("keras", _keras_seeds())):
            if generator is not None:
                version, words, gauss = generator.getstate()
                state |= {name: [version, gauss], f"{name}_words": np.array(words, dtype=np.uint32)}
        return state | _of_keras_3()

    def apply(self, state: dict[str, Any]) -> None:
        """Put their states back; a notebook sends ``tensorflow_seed`` too, the global seed that they began with."""
        if "tensorflow_seed" in state:
            sys.modules["tensorflow"].random.set_seed(state["tensorflow_seed"])
        if "keras_3" in state and _KERAS_3 in sys.modules:
            _put_back_keras_3(*state["keras_3"])
        if "keras" in state and _keras_seeds() is None and "keras.src.backend" in sys.modules:
            sys.modules["keras.src.backend"]._SEED_GENERATOR.generator = random.Random()
        for name, generator in (("tensorflow", _eager_seeds()), ("keras", _keras_seeds())):
            if generator is not None and name in state:
                version, gauss = state[name]
                generator.setstate((version, tuple(int(word) for word in state[f"{name}_words"]), gauss))
        if "tensorflow" in state and _eager_seeds() is not None:
            # As tf.random.set_seed() does: an operation that is kept for a seed has drawn from it already.
            sys.modules[_EAGER].context().clear_kernel_cache()


def _eager_seeds() -> random.Random | None:
    """Return the generator that gives TensorFlow's eager operations their seeds, None where there is none."""
    context = sys.modules.get(_EAGER)
    generator = getattr(context.context(), "_rng", None) if context is not None else None
    return generator if isinstance(generator, random.Random) else None


def _keras_seeds() -> random.Random | None:
    """Return the generator that gives the initializers of Keras their seeds, None where Keras has no seed."""
    backend = sys.modules.get("keras.src.backend")
    generator = getattr(getattr(backend, "_SEED_GENERATOR", None), "generator", None)
    return generator if isinstance(generator, random.Random) else None


def _of_keras_3() -> dict[str, Any]:
    """Return the state of Keras 3's stream, nothing where it has none."""
    module = sys.modules.get(_KERAS_3)
    if module is None:
        return {}
    seed, generator = (module.get_global_attribute(f"global_{name}") for name in ("random_seed", "seed_generator"))
    if seed is None and generator is None:
        return {}
    state = None if generator is None else sys.modules["keras"].ops.convert_to_numpy(generator.state).tolist()
    return {"keras_3": [seed, state]}


def _put_back_keras_3(seed: int | None, state: list[int] | None) -> None:
    """Give Keras 3 its seed, and what gives seeds its state; without one, the next draw makes it."""
    module, generator = sys.modules[_KERAS_3], None
    if state is not None:
        generator = module.get_global_attribute("global_seed_generator")
        if generator is None:
            generator = sys.modules["keras"].random.SeedGenerator(0)
        generator.state.assign(state)
    module.set_global_attribute("global_random_seed", seed)
    module.set_global_attribute("global_seed_generator", generator)

"""TensorFlow's global stream of seeds."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from det_harness.frameworks.base import RandomStreams

_EAGER = "tensorflow.python.eager.context"


class TensorFlowStreams(RandomStreams):
    """``tensorflow`` (version, gauss) and ``tensorflow_words`` (uint32, 625), if the global seed is set.

    They are of the generator that gives eager operations their seeds. ``keras`` and ``keras_words`` likewise, of the
    one that gives initializers theirs, if Keras has a seed.
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
        return state

    def apply(self, state: dict[str, Any]) -> None:
        """Put their states back; a notebook sends ``tensorflow_seed`` too, the global seed that they began with."""
        if "tensorflow_seed" in state:
            sys.modules["tensorflow"].random.set_seed(state["tensorflow_seed"])
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

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

    They are of the generator that gives eager operations their seeds.
    """

    def seed(self, seed: int, *, own_process: bool) -> None:
        """Set the global seed of a worker's own process; elsewhere it cannot be put back."""
        if own_process:
            sys.modules["tensorflow"].random.set_seed(seed)

    def capture(self) -> dict[str, Any]:
        """Return its state."""
        eager = _eager_seeds()
        if eager is None:
            return {}
        version, words, gauss = eager.getstate()
        return {"tensorflow": [version, gauss], "tensorflow_words": np.array(words, dtype=np.uint32)}

    def apply(self, state: dict[str, Any]) -> None:
        """Put its state back."""
        eager = _eager_seeds()
        if eager is None or "tensorflow" not in state:
            return
        version, gauss = state["tensorflow"]
        eager.setstate((version, tuple(int(word) for word in state["tensorflow_words"]), gauss))
        # As tf.random.set_seed() does: an operation that is kept for a seed has drawn from it already.
        sys.modules[_EAGER].context().clear_kernel_cache()


def _eager_seeds() -> random.Random | None:
    """Return the generator that gives TensorFlow's eager operations their seeds, None where there is none."""
    context = sys.modules.get(_EAGER)
    generator = getattr(context.context(), "_rng", None) if context is not None else None
    return generator if isinstance(generator, random.Random) else None

"""TensorFlow's global seed, and the stream that gives its eager operations theirs."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any

from det_native.process.stream import State, Stream, generator_stream

#: The name of TensorFlow's global seed among the states.
SEED = "tensorflow_seed"
_EAGER = "tensorflow.python.eager.context"


def _context() -> Any:
    module = sys.modules.get(_EAGER)
    return None if module is None else module.context()


def global_seed() -> int | None:
    """Return TensorFlow's global seed, None if there is none."""
    seed = getattr(_context(), "_seed", None)
    return seed if isinstance(seed, int) else None


def _read_seed() -> State | None:
    seed = global_seed()
    return None if seed is None else {SEED: seed}


def _put_back_seed(states: Mapping[str, Any]) -> None:
    sys.modules["tensorflow"].random.set_seed(states[SEED])


def _seeds_of_eager_operations() -> random.Random | None:
    """Return what gives TensorFlow's eager operations their seeds; None without a global seed."""
    generator = getattr(_context(), "_rng", None)
    return generator if isinstance(generator, random.Random) else None


def _forget_operations() -> None:
    """Do as ``tf.random.set_seed()`` does: an operation that is kept for a seed has drawn from it already."""
    _context().clear_kernel_cache()


STREAMS = (
    Stream(SEED, _read_seed, _put_back_seed),
    generator_stream("tensorflow", _seeds_of_eager_operations, _forget_operations),
)

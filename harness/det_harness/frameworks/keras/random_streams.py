"""The global streams of seeds of TensorFlow and Keras."""

from __future__ import annotations

import sys
from typing import Any

from det_harness.frameworks.base import RandomStreams
from det_native.process.streams import checkpointed, put_back
from det_native.process.tensorflow_ import SEED, global_seed

_LIBRARIES = ("tensorflow", "keras", "tf_keras")


class TensorFlowStreams(RandomStreams):
    """``tensorflow`` (version, gauss) and ``tensorflow_words`` (uint32, 625), if the global seed is set.

    They are of the generator that gives eager operations their seeds. ``keras`` and ``keras_words`` likewise, of the
    one that gives initializers theirs, if Keras has a seed. ``keras_3`` is the seed of Keras 3, and the state of what
    gives ``keras.random`` its seeds where it is not told any.
    """

    travel = True

    def seed(self, seed: int, *, own_process: bool) -> None:
        """Set the global seed of a worker's own process; elsewhere it cannot be put back."""
        if own_process:
            from det_native.keras.generations import internals

            sys.modules["tensorflow"].random.set_seed(seed)
            internals.seed_as_plain(seed)

    def begin(self, seed: int) -> None:
        """Set the global seed if the user has not: what draws without it cannot be saved."""
        if global_seed() is None:
            sys.modules["tensorflow"].random.set_seed(seed)

    def capture(self) -> dict[str, Any]:
        """Return their states, without the global seed, which is the trial's."""
        return {name: state for name, state in checkpointed(_LIBRARIES).items() if name != SEED}

    def apply(self, state: dict[str, Any]) -> None:
        """Put their states back; a notebook sends ``tensorflow_seed`` too, the global seed that they began with."""
        put_back(state, _LIBRARIES)

"""Torch's stream of random numbers where a run begins.

On the backend torch Keras reads its data by a ``DataLoader``, which draws a number when it begins. A run that goes on
begins one more than the whole run had, so what it draws is put back before the first batch of each run.
"""

from __future__ import annotations

import sys
from typing import Any

from det_native.keras.generations import BACKEND


class StreamOfTorch:
    """Notes the stream, and puts it back once; on another backend it does nothing."""

    def __init__(self) -> None:
        self._noted = False
        self._state: Any = None

    def note(self) -> None:
        """Note where the stream stands, once: of a run that goes on, after its states have been brought back."""
        if BACKEND == "torch" and not self._noted:
            self._noted, self._state = True, sys.modules["torch"].get_rng_state()

    def put_back(self) -> None:
        """Put it back to where it was noted."""
        if self._state is not None:
            sys.modules["torch"].set_rng_state(self._state)
            self._state = None

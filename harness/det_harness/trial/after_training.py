"""What the end of a training has made of its weights, in a checkpoint beside the state that a trial goes on from.

``on_train_end`` may put the best weights back, an optimizer its averages, a callback of a PyTorch trial whatever it
keeps: the last checkpoint of the loop is older. Where that is so, the trial ends with a copy of it that has, in a
folder of its own, the state after the end. A trial that goes on reads what it always has; a model that is loaded, or
another trial that begins with these weights, gets those after the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = "after_training"


def weights_in(checkpoint: Path) -> Path:
    """Return where the weights of a checkpoint lie that its trial has ended with, or had when it was made."""
    after = checkpoint / FOLDER
    return after if after.is_dir() else checkpoint


def digest(arrays: Iterable[Any]) -> bytes:
    """Return what tells two states of the same arrays apart."""
    seen = hashlib.blake2b()
    for array in arrays:
        seen.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return seen.digest()

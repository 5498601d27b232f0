"""What differs between the generations of Keras, chosen once by the version of ``tf.keras``.

``keras2.py`` has the private attributes of tf.keras 2.15 that there is nothing public for; ``keras3.py`` uses the
public interface of Keras 3 only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import tensorflow as tf

from det_native.keras import old_arguments

# That of tf.keras 2.15 does not say it.
VERSION: str = getattr(tf.keras, "__version__", None) or import_module("keras").__version__
NUMBER = int(VERSION.partition(".")[0])
BACKEND: str = tf.keras.backend.backend()
# How messages name it.
TITLE = f"Keras {VERSION} on {BACKEND}" if NUMBER > 2 else f"tf.keras {VERSION}"

old_arguments.install()
if TYPE_CHECKING:  # both modules have the functions that are asked for here
    from det_native.keras.generations import keras3 as internals
else:
    internals = import_module(f"{__name__}.keras{min(max(NUMBER, 2), 3)}")


def variables_here() -> dict[str, str]:
    """Return the environment variable by which another process has the backend of this one, if it has another one."""
    return {} if BACKEND == "tensorflow" else {"KERAS_BACKEND": BACKEND}

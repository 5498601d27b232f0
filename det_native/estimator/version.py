"""Which TensorFlow has ``tf.estimator``."""

from __future__ import annotations

import tensorflow as tf

from det_native.errors import MissingDependencyError


def check() -> None:
    """Refuse a TensorFlow without ``tf.estimator``.

    Raises
    ------
    MissingDependencyError
        If this TensorFlow is newer than 2.15.
    """
    if not hasattr(tf, "estimator"):
        raise MissingDependencyError(
            f"det_native.estimator needs tf.estimator, whose last version is in TensorFlow 2.15; this Python has "
            f'TensorFlow {tf.__version__}: run  pip install "tensorflow>=2.15,<2.16"'
        )

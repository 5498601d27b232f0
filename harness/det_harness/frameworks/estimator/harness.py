"""What the harness does with Estimator: no more than to have a worker ready."""

from __future__ import annotations

from importlib import import_module

from det_harness.frameworks.base import FrameworkHarness


class EstimatorHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""

    def warm_up(self, device: str) -> None:
        """Import TensorFlow. Nothing is built: V1 behaviour can only be chosen before that."""
        import tensorflow as tf

        _ = tf.estimator.Estimator
        import_module("det_native.estimator")

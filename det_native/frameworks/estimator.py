"""Estimator, as ``tf.estimator``: its workers are there, its trials come with a later version."""

from __future__ import annotations

from det_native.frameworks.description import Description

DESCRIPTION = Description(
    name="estimator",
    title="TensorFlow",
    module="tensorflow",
    install="det-native[estimator]",
    api="det_native.estimator",
    harness="det_harness.frameworks.estimator.harness:EstimatorHarness",
    variables=("TF_", "XLA_", "KERAS_"),
)

"""Estimator, as ``tf.estimator``."""

from __future__ import annotations

from det_native.frameworks import tensorflow_gpus
from det_native.frameworks.description import Description

DESCRIPTION = Description(
    name="estimator",
    title="TensorFlow",
    module="tensorflow",
    install="det-native[estimator]",
    api="det_native.estimator",
    checkpoint_format="saved_model",
    harness="det_harness.frameworks.estimator.harness:EstimatorHarness",
    trial_class="det_native.estimator.trial:EstimatorTrial",
    calls=("det_native.estimator.call:EstimatorCall",),
    init="det_native.experimental.estimator",
    variables=("TF_", "XLA_", "KERAS_"),
    gradient_means=("ring", "horovod"),
    without_effect={"optimizations.torch_compile": "for Estimator: it is for the models of a PyTorchTrial"},
    not_in_one_process="an estimator has a process for each slot",
    own_process=True,
    gpu_package=tensorflow_gpus.WITH_GPUS,
    gpu_remedy=tensorflow_gpus.GPU_REMEDY,
)

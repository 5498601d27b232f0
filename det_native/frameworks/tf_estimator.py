"""Estimator as TensorFlow's own ``train_and_evaluate()`` trains it, called by code that is not changed."""

from __future__ import annotations

from det_native.frameworks import tensorflow_gpus
from det_native.frameworks.description import Description

_OWN = "for tf.estimator.train_and_evaluate(): its RunConfig and its specs say when it saves and evaluates"
_GRADIENTS = "for tf.estimator.train_and_evaluate(): its roles share their variables, not their gradients"

DESCRIPTION = Description(
    name="tf_estimator",
    title="TensorFlow",
    module="tensorflow",
    install="det-native[estimator]",
    api="det_native.estimator.roles",
    checkpoint_format="saved_model",
    harness="det_harness.frameworks.tf_estimator.harness:RolesHarness",
    calls=("det_native.estimator.roles.call:UnchangedCall",),
    variables=("TF_", "XLA_", "KERAS_"),
    without_effect={
        "scheduling_unit": _OWN,
        "min_validation_period": _OWN,
        "min_checkpoint_period": _OWN,
        "perform_initial_validation": _OWN,
        "checkpoint_policy": _OWN,
        "optimizations.aggregation_frequency": _GRADIENTS,
        "optimizations.average_aggregated_gradients": _GRADIENTS,
        "optimizations.torch_compile": "for Estimator: it is for the models of a PyTorchTrial",
    },
    not_in_one_process="roles are processes",
    roles=True,
    scripts=True,
    own_length=True,
    gpu_package=tensorflow_gpus.WITH_GPUS,
    gpu_remedy=tensorflow_gpus.GPU_REMEDY,
)

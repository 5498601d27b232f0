"""Keras, as ``tf.keras``."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

from det_native.frameworks import tensorflow_gpus
from det_native.frameworks.description import Description

try:
    _GENERATION = int(version("keras").partition(".")[0])
except PackageNotFoundError:
    _GENERATION = 2

# Without importing it: only its version is looked at, and the variable by which it chooses.
_BACKEND = os.environ.get("KERAS_BACKEND") or "tensorflow"
_OF_OTHER_BACKENDS = (
    f"Keras 3 on {_BACKEND} trains on one slot; on several train it on TensorFlow (KERAS_BACKEND=tensorflow), "
    "tf.keras 2 or PyTorch"
)

DESCRIPTION = Description(
    name="keras",
    title="TensorFlow",
    module="tensorflow",
    install="det-native[keras]",
    api="det_native.keras",
    checkpoint_format="saved_weights",
    harness="det_harness.frameworks.keras.harness:KerasHarness",
    trial_class="det_native.keras.trial:TFKerasTrial",
    calls=("det_native.keras.native:FitCall",),
    init="det_native.experimental.keras",
    variables=("TF_", "XLA_", "KERAS_"),
    variables_here="det_native.keras.generations:variables_here",
    deciding_variables=("KERAS_BACKEND",),
    gradient_means=("ring", "horovod"),
    one_slot="" if _GENERATION < 3 or _BACKEND == "tensorflow" else _OF_OTHER_BACKENDS,
    mixed_precision=True,
    without_effect={"optimizations.torch_compile": "for Keras: it is for the models of a PyTorchTrial"},
    not_in_one_process="a model of tf.keras has a process for each slot",
    whole_epochs=True,
    running_means=True,
    own_progress=True,
    gpu_package=tensorflow_gpus.WITH_GPUS,
    gpu_remedy=tensorflow_gpus.GPU_REMEDY,
)

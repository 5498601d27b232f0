"""Keras, as ``tf.keras``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from det_native.frameworks import tensorflow_gpus
from det_native.frameworks.description import Description

try:
    _GENERATION = int(version("keras").partition(".")[0])
except PackageNotFoundError:
    _GENERATION = 2

# Without importing it: only its version is looked at.
_OF_KERAS_3 = (
    "Keras 3 trains on one slot; on several train tf.keras 2 (pip install 'det-native[keras2]', Python 3.11) and "
    "PyTorch"
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
    gradient_means=("ring", "horovod") if _GENERATION < 3 else (),
    one_slot="" if _GENERATION < 3 else _OF_KERAS_3,
    mixed_precision=True,
    without_effect={"optimizations.torch_compile": "for Keras: it is for the models of a PyTorchTrial"},
    not_in_one_process="a model of tf.keras has a process for each slot",
    whole_epochs=True,
    running_means=True,
    own_progress=True,
    gpu_package=tensorflow_gpus.WITH_GPUS,
    gpu_remedy=tensorflow_gpus.GPU_REMEDY,
)

"""Keras, as ``tf.keras``."""

from __future__ import annotations

from det_native.frameworks.description import Description

DESCRIPTION = Description(
    name="keras",
    title="TensorFlow",
    module="tensorflow",
    install="det-native[keras]",
    api="det_native.keras",
    harness="det_harness.frameworks.keras.harness:KerasHarness",
    trial_class="det_native.keras.trial:TFKerasTrial",
    calls=("det_native.keras.native:FitCall",),
    init="det_native.experimental.keras",
    call_text="det_native.experimental.document_keras:FitText",
    variables=("TF_", "XLA_", "KERAS_"),
    gradient_means=("horovod",),
    mixed_precision=True,
    without_effect={"optimizations.torch_compile": "for Keras: it is for the models of a PyTorchTrial"},
    not_in_one_process="a model of tf.keras has a process for each slot",
    whole_epochs=True,
    running_means=True,
    own_progress=True,
)

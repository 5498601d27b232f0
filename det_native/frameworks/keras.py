"""Keras, as ``tf.keras``."""

from __future__ import annotations

from det_native.frameworks.description import Description

_EVERY_BATCH = "for Keras: its optimizer makes a step of every batch"

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
    without_effect={
        "optimizations.aggregation_frequency": _EVERY_BATCH,
        "optimizations.average_aggregated_gradients": _EVERY_BATCH,
        "optimizations.torch_compile": "for Keras: it is for the models of a PyTorchTrial",
    },
    not_in_one_process="a model of tf.keras has a process for each slot",
    whole_epochs=True,
    running_means=True,
    own_progress=True,
)

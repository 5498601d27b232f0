"""Estimator, as ``tf.estimator``."""

from __future__ import annotations

from det_native.frameworks.description import Description

_EVERY_BATCH = "for Estimator on one slot: its optimizer makes a step of every batch"

DESCRIPTION = Description(
    name="estimator",
    title="TensorFlow",
    module="tensorflow",
    install="det-native[estimator]",
    api="det_native.estimator",
    harness="det_harness.frameworks.estimator.harness:EstimatorHarness",
    trial_class="det_native.estimator.trial:EstimatorTrial",
    calls=("det_native.estimator.call:EstimatorCall",),
    init="det_native.experimental.estimator",
    context_calls=frozenset({"train_and_evaluate"}),
    call_text="det_native.experimental.document_estimator:EstimatorCallText",
    variables=("TF_", "XLA_", "KERAS_"),
    without_effect={
        "optimizations.aggregation_frequency": _EVERY_BATCH,
        "optimizations.average_aggregated_gradients": _EVERY_BATCH,
        "optimizations.torch_compile": "for Estimator: it is for the models of a PyTorchTrial",
    },
    not_in_one_process="an estimator has a process for each slot",
    own_process=True,
)

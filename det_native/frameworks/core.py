"""Code of any framework that reports by the Core API."""

from __future__ import annotations

from det_native.frameworks.description import Description

_GRADIENTS = "for the Core API: the code exchanges its gradients"

DESCRIPTION = Description(
    name="core",
    title="the Core API",
    module="det_native",
    install="det-native",
    api="det_native.core",
    harness="det_harness.frameworks.core.harness:CoreHarness",
    calls=("det_native.core.loop_call:CoreLoopCall", "det_native.core.command:CommandCall"),
    init="det_native.experimental.core",
    context_calls=frozenset({"epochs", "operations"}),
    without_effect={
        "optimizations.aggregation_frequency": _GRADIENTS,
        "optimizations.average_aggregated_gradients": _GRADIENTS,
        "optimizations.torch_compile": "for the Core API: it is for the models of a PyTorchTrial",
    },
    not_in_one_process="a command has all slots of its machine",
    own_length=True,
    own_steps=True,
)

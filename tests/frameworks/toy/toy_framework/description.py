"""What det_native has to know of this framework."""

from det_native.frameworks import Description

DESCRIPTION = Description(
    name="toy",
    title="Toy",
    module="toy_framework",
    install="toy-framework",
    api="toy_framework",
    harness="toy_framework.harness:ToyHarness",
    trial_class="toy_framework.trial:ToyTrial",
    without_effect={"optimizations.aggregation_frequency": "for Toy: it has no gradients"},
)

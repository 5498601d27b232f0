"""Training with ``tf.estimator``: trial classes, contexts and hooks. TensorFlow is imported on the first use."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from det_native.errors import MissingDependencyError
from det_native.frameworks import get_framework, missing, translated
from det_native.public_names import listed, without_init

if TYPE_CHECKING:
    from det_native.estimator.base_context import EstimatorContext
    from det_native.estimator.experimental_context import EstimatorExperimentalContext
    from det_native.estimator.hooks import RunHook
    from det_native.estimator.native import EstimatorNativeContext
    from det_native.estimator.reducers import MetricReducer, MetricsReducer
    from det_native.estimator.trial import EstimatorTrial, ServingInputReceiverFn
    from det_native.estimator.trial_context import EstimatorTrialContext

__all__ = [
    "EstimatorContext",
    "EstimatorExperimentalContext",
    "EstimatorNativeContext",
    "EstimatorTrial",
    "EstimatorTrialContext",
    "MetricReducer",
    "MetricsReducer",
    "RunHook",
    "ServingInputReceiverFn",
]

if find_spec("tensorflow") is None:
    raise missing(get_framework("estimator"), __name__)

_HOMES = {
    "EstimatorContext": "det_native.estimator.base_context",
    "EstimatorExperimentalContext": "det_native.estimator.experimental_context",
    "EstimatorNativeContext": "det_native.estimator.native",
    "EstimatorTrial": "det_native.estimator.trial",
    "EstimatorTrialContext": "det_native.estimator.trial_context",
    "MetricReducer": "det_native.estimator.reducers",
    "MetricsReducer": "det_native.estimator.reducers",
    "RunHook": "det_native.estimator.hooks",
    "ServingInputReceiverFn": "det_native.estimator.trial",
}


def __getattr__(name: str) -> object:
    if name == "init":
        raise without_init("estimator")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    with translated(__name__):
        tensorflow = import_module("tensorflow")
        if not hasattr(tensorflow, "estimator"):
            raise MissingDependencyError(
                "det_native.estimator needs tf.estimator, whose last version is in TensorFlow 2.15; this Python has "
                f'TensorFlow {tensorflow.__version__}: run  pip install "tensorflow>=2.15,<2.16"'
            )
        value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


__dir__ = listed(__all__)

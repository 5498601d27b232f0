"""Trial API for ``tf.estimator``: comes with a later version; its names say so when they are used."""

from det_native.unsupported import unsupported_names

__getattr__ = unsupported_names(
    __name__,
    frozenset(
        {
            "EstimatorExperimentalContext",
            "EstimatorNativeContext",
            "EstimatorTrial",
            "EstimatorTrialContext",
            "MetricReducer",
            "RunHook",
        }
    ),
    remedy="Until then use det_native.keras or det_native.pytorch.",
)

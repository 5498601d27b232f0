"""Writing of TensorBoard event files: comes with a later version; its names say so when they are used."""

from det_native.later import refuse

__getattr__ = refuse(
    __name__,
    frozenset({"BatchMetricWriter", "MetricWriter", "TensorboardManager", "metric_writers"}),
    remedy="Until then experiment.plot() and trial.metrics() have the curves.",
)

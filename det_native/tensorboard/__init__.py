"""TensorBoard event files: ``metric_writers.pytorch.TorchWriter`` writes them; they are kept with the trial."""

from typing import TYPE_CHECKING, Any

from det_native.public_names import listed
from det_native.tensorboard.place import get_base_path
from det_native.unsupported import unsupported_names

if TYPE_CHECKING:
    from det_native.tensorboard import metric_writers

__all__ = ["get_base_path", "metric_writers"]

_unsupported = unsupported_names(
    __name__,
    frozenset({"BatchMetricWriter", "MetricWriter", "TensorboardManager"}),
    remedy="Until then experiment.plot() and trial.metrics() have the curves.",
)


def __getattr__(name: str) -> Any:
    if name == "metric_writers":
        import importlib

        return importlib.import_module("det_native.tensorboard.metric_writers")
    _unsupported(name)


__dir__ = listed(__all__)

"""The Core API: metrics, checkpoints, preemption and the searcher for code of any framework."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from det_native.core.checkpoints import CheckpointContext
    from det_native.core.context import Context
    from det_native.core.distributed import DistributedContext
    from det_native.core.entry import init
    from det_native.core.experimental import ExperimentalCoreContext
    from det_native.core.modes import DownloadMode, EarlyExitReason, PreemptMode, SearcherMode, TensorboardMode, Unit
    from det_native.core.preempt import PreemptContext
    from det_native.core.profiler import ProfilerContext
    from det_native.core.searcher import SearcherContext, SearcherOperation
    from det_native.core.train import TrainContext

_NAMES = {
    "CheckpointContext": "checkpoints",
    "Context": "context",
    "DistributedContext": "distributed",
    "DownloadMode": "modes",
    "EarlyExitReason": "modes",
    "ExperimentalCoreContext": "experimental",
    "PreemptContext": "preempt",
    "PreemptMode": "modes",
    "ProfilerContext": "profiler",
    "SearcherContext": "searcher",
    "SearcherMode": "modes",
    "SearcherOperation": "searcher",
    "TensorboardMode": "modes",
    "TrainContext": "train",
    "Unit": "modes",
    "init": "entry",
}

__all__ = [
    "CheckpointContext",
    "Context",
    "DistributedContext",
    "DownloadMode",
    "EarlyExitReason",
    "ExperimentalCoreContext",
    "PreemptContext",
    "PreemptMode",
    "ProfilerContext",
    "SearcherContext",
    "SearcherMode",
    "SearcherOperation",
    "TensorboardMode",
    "TrainContext",
    "Unit",
    "init",
]


def __getattr__(name: str) -> object:
    if name in _NAMES:
        from importlib import import_module

        value: object = getattr(import_module(f"det_native.core.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    if name.startswith("Dummy") or name == "SearcherContextMissing":
        from det_native.unsupported import UnsupportedNameError

        raise UnsupportedNameError(
            f"det.core.{name} is not there: outside of an experiment det.core.init() gives objects of the same classes."
        )
    raise AttributeError(f"module 'det_native.core' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)

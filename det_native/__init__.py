"""Train deep-learning models from a notebook: in the kernel, then on a cluster, with the same cells.

Nothing but the standard library is imported here; every name below loads on first use.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from det_native import core, errors, estimator, experimental, keras, pytorch, tensorboard, util
    from det_native._env_context import EnvContext
    from det_native._version import PROTOCOL, __version__
    from det_native.client.handles import Experiment
    from det_native.client.last import last_experiment
    from det_native.client.notifying import notify
    from det_native.client.search_preview import preview_search
    from det_native.core.cluster_info import (
        LOG_FORMAT,
        ClusterInfo,
        RendezvousInfo,
        ResourcesInfo,
        TrialInfo,
        get_cluster_info,
    )
    from det_native.errors import InvalidHP
    from det_native.experimental import CLUSTER, LOCAL, Mode, attach, experiment, experiments
    from det_native.experimental.finding import compare, to_dataframe
    from det_native.experimental.registry import create_model, model, models
    from det_native.home.waiting import wait
    from det_native.logged import log, log_histogram, log_image, log_table, log_text
    from det_native.schema.config import ExperimentConfig
    from det_native.schema.helpers import Categorical, Constant, Double, Integer, Log
    from det_native.trial import DistributedContext, Trial, TrialContext

_PACKAGES = ("core", "errors", "estimator", "experimental", "keras", "pytorch", "tensorboard", "util")

_NAMES = {
    "ClusterInfo": "det_native.core.cluster_info",
    "LOG_FORMAT": "det_native.core.cluster_info",
    "RendezvousInfo": "det_native.core.cluster_info",
    "ResourcesInfo": "det_native.core.cluster_info",
    "TrialInfo": "det_native.core.cluster_info",
    "get_cluster_info": "det_native.core.cluster_info",
    "CLUSTER": "det_native.experimental",
    "LOCAL": "det_native.experimental",
    "Mode": "det_native.experimental",
    "attach": "det_native.experimental",
    "experiment": "det_native.experimental",
    "experiments": "det_native.experimental",
    "create_model": "det_native.experimental.registry",
    "model": "det_native.experimental.registry",
    "models": "det_native.experimental.registry",
    "Experiment": "det_native.client.handles",
    "ExperimentConfig": "det_native.schema.config",
    "DistributedContext": "det_native.trial",
    "EnvContext": "det_native._env_context",
    "PROTOCOL": "det_native._version",
    "Categorical": "det_native.schema.helpers",
    "Constant": "det_native.schema.helpers",
    "Double": "det_native.schema.helpers",
    "Integer": "det_native.schema.helpers",
    "InvalidHP": "det_native.errors",
    "Log": "det_native.schema.helpers",
    "Trial": "det_native.trial",
    "TrialContext": "det_native.trial",
    "compare": "det_native.experimental.finding",
    "last_experiment": "det_native.client.last",
    "log": "det_native.logged.calls",
    "log_histogram": "det_native.logged.calls",
    "log_image": "det_native.logged.calls",
    "log_table": "det_native.logged.calls",
    "notify": "det_native.client.notifying",
    "log_text": "det_native.logged.calls",
    "preview_search": "det_native.client.search_preview",
    "to_dataframe": "det_native.experimental.finding",
    "wait": "det_native.home.waiting",
    "__version__": "det_native._version",
}

__all__ = [  # noqa: RUF022 (packages first, then names)
    "core",
    "errors",
    "estimator",
    "experimental",
    "keras",
    "pytorch",
    "tensorboard",
    "util",
    "CLUSTER",
    "Categorical",
    "ClusterInfo",
    "Constant",
    "DistributedContext",
    "Double",
    "EnvContext",
    "Experiment",
    "ExperimentConfig",
    "Integer",
    "InvalidHP",
    "LOCAL",
    "LOG_FORMAT",
    "Log",
    "Mode",
    "PROTOCOL",
    "RendezvousInfo",
    "ResourcesInfo",
    "Trial",
    "TrialContext",
    "TrialInfo",
    "__version__",
    "attach",
    "compare",
    "create_model",
    "experiment",
    "experiments",
    "get_cluster_info",
    "last_experiment",
    "log",
    "log_histogram",
    "log_image",
    "log_table",
    "notify",
    "log_text",
    "model",
    "models",
    "preview_search",
    "to_dataframe",
    "wait",
]


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return _load_package(name)
    if name in _NAMES:
        from det_native.imports import load

        value: object = getattr(load(_NAMES[name]), name)
        globals()[name] = value
        return value
    if name == "init":
        from det_native.public_names import without_init

        raise without_init("")
    raise AttributeError(f"module 'det_native' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _load_package(name: str) -> "ModuleType":
    from det_native.frameworks import translated
    from det_native.imports import load

    with translated(f"det_native.{name}"):
        return load(f"det_native.{name}")


def _log_executions() -> None:
    """In IPython, note from now on which cells run: capture slices over that log."""
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return
    from det_native.capture.log import install

    install()


class _BeforeKeras:
    """Finds nothing; as Keras is imported, it has optimizers warn of old names of arguments, before `init()`, too."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Look for ``keras`` only."""
        if name == "keras":
            try:
                from det_native.keras import old_arguments
            except ImportError:  # without TensorFlow
                return
            old_arguments.install()


_log_executions()
if "keras" in sys.modules:
    _BeforeKeras().find_spec("keras")
else:
    sys.meta_path.insert(0, _BeforeKeras())

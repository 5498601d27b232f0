"""Experiments of a notebook or script: ``init()`` of a framework, ``create()``, and the handles of what was run."""

from typing import TYPE_CHECKING, Any

from det_native.client.moving import register
from det_native.errors import show_without_ours
from det_native.experimental.arguments import Mode
from det_native.frameworks import framework_with_init
from det_native.imports import load
from det_native.public_names import listed, without_init
from det_native.runtime import register_replay
from det_native.unsupported import unsupported_names

if TYPE_CHECKING:
    from det_native.client.handles import Checkpoint, Experiment, Trial
    from det_native.client.handles import Experiment as ExperimentReference
    from det_native.client.handles import Trial as TrialReference
    from det_native.client.models import Model, ModelVersion
    from det_native.experimental import core, core_v2, estimator, keras, pytorch
    from det_native.experimental.creation import create, create_trial_instance
    from det_native.experimental.existing import Determined, attach, experiment, experiments
    from det_native.experimental.one_batch import test_one_batch
    from det_native.schema.registry import ModelOrderBy, ModelSortBy

show_without_ours()


def _move(*of_run: Any) -> Any:
    """Send the program of a kernel's run to the cluster; the room that does it is imported by then only."""
    return load("det_native.experimental.moving").move(*of_run)


def _replayed(*of_call: Any) -> Any:
    """Return the handle of an experiment that a program has made before the call that trains."""
    return load("det_native.client.replayed_source").replayed(*of_call)


register(_move)
register_replay(_replayed)

LOCAL = Mode.LOCAL
CLUSTER = Mode.CLUSTER

_NAMES = {
    "Checkpoint": ("det_native.client.handles", "Checkpoint"),
    "Determined": ("det_native.experimental.existing", "Determined"),
    "Experiment": ("det_native.client.handles", "Experiment"),
    "ExperimentReference": ("det_native.client.handles", "Experiment"),
    "Model": ("det_native.client.models", "Model"),
    "ModelOrderBy": ("det_native.schema.registry", "ModelOrderBy"),
    "ModelSortBy": ("det_native.schema.registry", "ModelSortBy"),
    "ModelVersion": ("det_native.client.models", "ModelVersion"),
    "Trial": ("det_native.client.handles", "Trial"),
    "TrialReference": ("det_native.client.handles", "Trial"),
    "attach": ("det_native.experimental.existing", "attach"),
    "experiment": ("det_native.experimental.existing", "experiment"),
    "experiments": ("det_native.experimental.existing", "experiments"),
    "create": ("det_native.experimental.creation", "create"),
    "create_trial_instance": ("det_native.experimental.creation", "create_trial_instance"),
    "test_one_batch": ("det_native.experimental.one_batch", "test_one_batch"),
}

_unsupported = unsupported_names(
    "det_native.experimental",
    frozenset({"init_native"}),
    remedy="Now there are create() and the init() of each framework, with local=True, test=True for a minimal loop.",
)

__all__ = [
    "CLUSTER",
    "LOCAL",
    "Checkpoint",
    "Determined",
    "Experiment",
    "ExperimentReference",
    "Mode",
    "Model",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "Trial",
    "TrialReference",
    "attach",
    "core",
    "core_v2",
    "create",
    "create_trial_instance",
    "estimator",
    "experiment",
    "experiments",
    "keras",
    "pytorch",
    "test_one_batch",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        # Handles show themselves by what display registers; nothing else of it is loaded here.
        load("det_native.display")
        module, attribute = _NAMES[name]
        value = getattr(load(module), attribute)
        globals()[name] = value
        return value
    if name == "init":
        raise without_init("")
    if name == "core_v2":
        return load("det_native.experimental.core_v2")
    framework = framework_with_init(name)
    return load(framework.init) if framework is not None else _unsupported(name)


__dir__ = listed(__all__)

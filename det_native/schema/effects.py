"""Fields that have no effect here, and features that this version does not run yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from det_native.errors import UnsupportedFeatureError
from det_native.frameworks import Description, find_framework, get_framework, trial_class_names
from det_native.schema.config import ExperimentConfig
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    Leaf,
    LogHyperparameter,
    leaves,
)
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import Framework
from det_native.schema.roles import STRATEGY
from det_native.schema.searcher import OptunaSearcher, SingleSearcher

_CONTAINERS = "trials run as processes, not in containers"
_MANAGERS = "there are no resource pools or workload managers"
_HOROVOD = "it tunes Horovod, which distributed.backend: horovod uses on several slots"
_AUTO_TUNED = "optimizations.auto_tune_tensor_fusion finds it out"
_WHOLE_RUN = "a trial is measured from its begin to its end"
_NO_EFFECT = {
    "environment.image": _CONTAINERS,
    "environment.force_pull_image": _CONTAINERS,
    "environment.registry_auth": _CONTAINERS,
    "environment.pod_spec": _CONTAINERS,
    "environment.ports": _CONTAINERS,
    "environment.proxy_ports": _CONTAINERS,
    "environment.add_capabilities": _CONTAINERS,
    "environment.drop_capabilities": _CONTAINERS,
    "bind_mounts": _CONTAINERS,
    "resources.shm_size": _CONTAINERS,
    "resources.devices": _CONTAINERS,
    "checkpoint_storage.propagation": _CONTAINERS,
    "checkpoint_storage.container_path": _CONTAINERS,
    "checkpoint_storage.tensorboard_path": "event files are kept with the experiment",
    "resources.agent_label": _MANAGERS,
    "resources.resource_pool": _MANAGERS,
    "resources.slots": "it is for notebooks and shells; resources.slots_per_trial is for trials",
    "slurm": _MANAGERS,
    "pbs": _MANAGERS,
    "preemption_timeout": _MANAGERS,
    "workspace": "there are no workspaces",
    "entrypoint": "the call says what is trained",
    "profiling.begin_on_batch": _WHOLE_RUN,
    "profiling.end_after_batch": _WHOLE_RUN,
    "profiling.sync_timings": "the parts of a batch are not timed",
    "log_policies": "logs are kept as they are",
    "integrations": "there are none",
    "tensorboard_storage": "not for users",
    "debug": "not for users",
    "internal": "not for users",
    "security": "not for users",
}
_NO_EFFECT_ON_ONE_SLOT = {
    "resources.native_parallel": "a trial on one slot spreads no batch",
    "optimizations.gradient_compression": "a trial on one slot exchanges no gradients",
    "optimizations.average_training_metrics": "a trial on one slot has no others to average with",
    "distributed.backend": "a trial on one slot exchanges no gradients",
    "distributed.strategy": "a trial on one slot has no others to share its models with",
    "distributed.fsdp_layers": "a trial on one slot has no others to share its models with",
    "distributed.interface": "a trial on one slot is on one machine",
}
_OF_HOROVOD = ("tensor_fusion_threshold", "tensor_fusion_cycle_time", "auto_tune_tensor_fusion")
_HERE = "a local run trains in this process, and holds no slot"
_ON_THIS_MACHINE = "a local run is on this machine, with the GPUs that it has"
_NO_EFFECT_HERE = {
    "resources.max_slots": _HERE,
    "resources.priority": _HERE,
    "resources.weight": _HERE,
    "resources.accelerator": _ON_THIS_MACHINE,
    "resources.node": _ON_THIS_MACHINE,
    "resources.placement": _ON_THIS_MACHINE,
    "resources.is_single_node": _ON_THIS_MACHINE,
    "resources.allow_cpu": "a local run only warns of a GPU that the framework does not see",
    "max_restarts": "a local run trains in this process, and cannot begin again",
    "after": "a local run begins at once",
    "environment.environment_variables": "a local run has the environment of this process",
    "distributed.interface": "a local run is on one machine",
    "environment.packages": "a local run has the packages of this process",
}


def fields_without_effect(
    config: ExperimentConfig, framework: Framework | None = None, *, local: bool = False
) -> dict[str, str]:
    """Return the fields that differ from their default though they change nothing here, each with the reason.

    Parameters
    ----------
    framework : str, optional
        What is trained with: some fields are without effect for one framework only.
    local : bool
        Whether it is trained in the caller's process.
    """
    found = {}
    described = find_framework(framework) if framework is not None else None
    of_framework = dict(described.without_effect) if described is not None else {}
    one = config.resources.slots_per_trial <= 1 and config.distributed.strategy != STRATEGY
    of_slots = _NO_EFFECT_ON_ONE_SLOT if one else {}
    here = _NO_EFFECT_HERE if local else {}
    for path, reason in (_NO_EFFECT | of_slots | _of_horovod(config, framework) | of_framework | here).items():
        owner: Any = config
        *sections, name = path.split(".")
        for section in sections:
            owner = getattr(owner, section)
        known = type(owner).model_fields.get(name)
        if known is None or (path == "checkpoint_storage.container_path" and owner.type == "directory"):
            continue
        if known.is_required() or getattr(owner, name) != known.get_default(call_default_factory=True):
            found[path] = reason
    if local and config.resources.slots_per_trial == 0:
        found["resources.slots_per_trial"] = "a local run has what its process sees"
    return found


def unsearched_ranges(config: ExperimentConfig) -> str:
    """Return a sentence on hyperparameters with several values of which the searcher tries only one, else ``""``."""
    if not isinstance(config.searcher, SingleSearcher):
        return ""
    ranges = {".".join(path): leaf for path, leaf in leaves(config.hyperparameters) if _has_several_values(leaf)}
    if not ranges:
        return ""
    name, first = next(iter(ranges.items()))
    names, several = ", ".join(f"hyperparameters.{path}" for path in ranges), len(ranges) > 1
    drawn = "get random values of their ranges" if several else "gets a random value of its range"
    return (
        f"searcher.name is 'single', which searches nothing: {names} {drawn}. To search, set searcher.name: random and "
        f"searcher.max_trials: 10. To train once, give {'each' if several else 'it'} a value, such as "
        f"{name}: {_example(first)}."
    )


def _has_several_values(leaf: Leaf) -> bool:
    if isinstance(leaf, CategoricalHyperparameter):
        return len(leaf.vals) > 1
    return not isinstance(leaf, ConstHyperparameter)


def _example(leaf: Leaf) -> Any:
    """Return a value of a range."""
    match leaf:
        case ConstHyperparameter():
            return leaf.val
        case CategoricalHyperparameter():
            return leaf.vals[0]
        case LogHyperparameter():
            return leaf.value(leaf.minval)
    return leaf.minval


def _of_horovod(config: ExperimentConfig, framework: Framework | None) -> dict[str, str]:
    """Return what Horovod does not look at, each with the reason."""
    described = find_framework(framework) if framework is not None else None
    backend = config.distributed.backend
    by_horovod = backend == "horovod" if described is None else described.exchanges_by_horovod(backend)
    if not by_horovod or config.resources.slots_per_trial <= 1:
        return {f"optimizations.{name}": _HOROVOD for name in _OF_HOROVOD}
    if config.optimizations.auto_tune_tensor_fusion:
        return {f"optimizations.{name}": _AUTO_TUNED for name in _OF_HOROVOD[:2]}
    return {}


def refuse_unsupported(config: ExperimentConfig, framework: Framework | None = None) -> None:
    """Refuse what the configuration asks for and this version does not run yet.

    Parameters
    ----------
    framework : str, optional
        What is trained with, as far as that is known: it says what runs.

    Raises
    ------
    UnsupportedFeatureError
        Naming every such field with its value.
    MissingDependencyError
        If it is to run on several slots, and nothing is known of the framework.
    """
    described = get_framework(framework) if framework is not None else None
    if config.resources.native_parallel and described is not None and described.not_in_one_process:
        raise UnsupportedFeatureError(
            f"resources.native_parallel: true is refused: {described.not_in_one_process}. Remove it; "
            "resources.slots_per_trial alone says how many there are."
        )
    if described is not None:
        _refuse_of_another_framework(config, described)
    if described is not None and described.one_slot and config.resources.slots_per_trial > 1:
        slots = config.resources.slots_per_trial
        raise UnsupportedFeatureError(f"resources.slots_per_trial: {slots} is refused: {described.one_slot}.")
    prunes = isinstance(config.searcher, OptunaSearcher) and config.searcher.prunes
    if prunes and config.searcher.max_length == UNTOLD:
        raise UnsupportedFeatureError(
            "searcher.pruner compares trials that have come equally far, and nothing says how long they train: give "
            "it, for example searcher.max_length: {batches: 1000}."
        )
    if config.searcher.in_parts and config.searcher.max_length == UNTOLD:
        raise UnsupportedFeatureError(
            f"searcher.name: {config.searcher.name} trains parts of a length, and nothing says how long: give it, for "
            "example searcher.max_length: {batches: 1000}."
        )
    found = list(_unsupported(config, framework))
    if found:
        lines = "\n".join(f"  - {line}" for line in found)
        raise UnsupportedFeatureError(f"The configuration asks for what comes with a later version:\n{lines}")


def _unsupported(config: ExperimentConfig, framework: Framework | None) -> Iterator[str]:
    if framework is not None and _cannot_take_the_slots(config, framework):
        slots = config.resources.slots_per_trial
        several = f"a {trial_class_names(several_slots=True)} runs on several"
        if get_framework(framework).roles:
            several = f"on several its processes have roles: distributed.strategy: {STRATEGY}, distributed.roles"
        yield f"resources.slots_per_trial: {slots} (1 slot now for {framework}; {several})"
    if config.data_layer.type != "shared_fs":
        yield f"data_layer: {config.data_layer.type} (shared_fs, a folder that all machines see, works now)"


def _cannot_take_the_slots(config: ExperimentConfig, framework: Framework) -> bool:
    if config.resources.slots_per_trial <= 1:
        return False
    described = get_framework(framework)
    in_roles = described.roles and config.distributed.strategy == STRATEGY
    return not (described.gradient_means or described.process_per_machine or in_roles)


def _refuse_of_another_framework(config: ExperimentConfig, framework: Description) -> None:
    """Refuse what another framework than this one does."""
    if config.distributed.strategy == STRATEGY and not framework.roles:
        raise UnsupportedFeatureError(
            f"distributed.strategy: {STRATEGY} is refused: it is for code that calls "
            "tf.estimator.train_and_evaluate() itself. Remove it; resources.slots_per_trial is for all other."
        )
    if config.distributed.strategy == "fsdp" and "torch" not in framework.gradient_means:
        raise UnsupportedFeatureError(
            f"distributed.strategy: fsdp is refused: it shards models of PyTorch, not of {framework.name}. Remove it."
        )
    precision = config.optimizations.mixed_precision
    if precision != "O0" and not framework.mixed_precision:
        raise UnsupportedFeatureError(
            f"optimizations.mixed_precision: {precision} is refused: it is for tf.keras. Remove it; in the "
            "__init__() of a PyTorchTrial, call context.configure_apex_amp()."
        )

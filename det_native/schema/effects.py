"""Fields that have no effect here, and features that this version does not run yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from det_native.errors import UnsupportedFeatureError
from det_native.schema.config import ExperimentConfig
from det_native.schema.manifests import Framework

_CONTAINERS = "trials run as processes, not in containers"
_MANAGERS = "there are no resource pools or workload managers"
_ONE_SLOT = "a trial on one slot exchanges no gradients"
_KERAS = "for Keras: its optimizer makes a step of every batch"
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
    "resources.is_single_node": _MANAGERS,
    "resources.native_parallel": "a trial on one slot spreads no batch",
    "resources.slots": "it is for notebooks and shells; resources.slots_per_trial is for trials",
    "slurm": _MANAGERS,
    "pbs": _MANAGERS,
    "preemption_timeout": _MANAGERS,
    "workspace": "there are no workspaces",
    "project": "there are no workspaces",
    "entrypoint": "the call says what is trained",
    "profiling": "there is no profiler",
    "log_policies": "logs are kept as they are",
    "log_retention_days": "logs are kept as they are",
    "retention_policy": "logs are kept as they are",
    "integrations": "there are none",
    "optimizations.tensor_fusion_threshold": _ONE_SLOT,
    "optimizations.tensor_fusion_cycle_time": _ONE_SLOT,
    "optimizations.auto_tune_tensor_fusion": _ONE_SLOT,
    "optimizations.gradient_compression": _ONE_SLOT,
    "optimizations.average_training_metrics": "a trial on one slot has no others to average with",
    "tensorboard_storage": "not for users",
    "debug": "not for users",
    "internal": "not for users",
    "security": "not for users",
}
_NO_EFFECT_FOR: dict[Framework, dict[str, str]] = {
    "keras": {
        "optimizations.aggregation_frequency": _KERAS,
        "optimizations.average_aggregated_gradients": _KERAS,
    },
}


def fields_without_effect(config: ExperimentConfig, framework: Framework | None = None) -> dict[str, str]:
    """Return the fields that differ from their default though they change nothing here, each with the reason.

    Parameters
    ----------
    config : ExperimentConfig
    framework : {"torch", "keras", "estimator"}, optional
        What is trained with: some fields are without effect for one framework only.
    """
    found = {}
    of_framework = _NO_EFFECT_FOR.get(framework, {}) if framework is not None else {}
    for path, reason in (_NO_EFFECT | of_framework).items():
        owner: Any = config
        *sections, name = path.split(".")
        for section in sections:
            owner = getattr(owner, section)
        known = type(owner).model_fields.get(name)
        if known is None or known.is_required():
            continue
        if getattr(owner, name) != known.get_default(call_default_factory=True):
            found[path] = reason
    return found


def refuse_unsupported(config: ExperimentConfig) -> None:
    """Refuse what the configuration asks for and this version does not run yet.

    Raises
    ------
    UnsupportedFeatureError
        Naming every such field with its value.
    """
    found = list(_unsupported(config))
    if found:
        lines = "\n".join(f"  - {line}" for line in found)
        raise UnsupportedFeatureError(f"The configuration asks for what comes with a later version:\n{lines}")


def _unsupported(config: ExperimentConfig) -> Iterator[str]:
    searcher = config.searcher
    if searcher.name not in ("single", "random", "grid"):
        yield f"searcher.name: {searcher.name} (single, random and grid run now)"
    if searcher.source_trial_id is not None:
        yield f"searcher.source_trial_id: {searcher.source_trial_id} (trials start from scratch now)"
    if searcher.source_checkpoint_uuid is not None:
        yield f"searcher.source_checkpoint_uuid: {searcher.source_checkpoint_uuid} (trials start from scratch now)"
    if config.resources.slots_per_trial > 1:
        yield f"resources.slots_per_trial: {config.resources.slots_per_trial} (a trial runs on 1 slot now)"
    if config.checkpoint_storage.type not in (None, "shared_fs"):
        yield f"checkpoint_storage.type: {config.checkpoint_storage.type} (shared_fs and the master's own work now)"
    if config.optimizations.mixed_precision != "O0":
        remedy = "remove it, and call context.configure_apex_amp() in the __init__() of your PyTorchTrial"
        yield f"optimizations.mixed_precision: {config.optimizations.mixed_precision} ({remedy})"
    if config.data_layer != ExperimentConfig.model_fields["data_layer"].get_default(call_default_factory=True):
        yield f"data_layer: {config.data_layer.type} (data sets are not cached yet)"

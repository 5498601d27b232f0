"""What exchanges the gradients of a trial's ranks; see ``det_native.pytorch.gradients.Gradients``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from det_harness.ranks.communicator import Communicator
    from det_native.pytorch.gradients import Gradients


def gradients_of(communicator: Communicator, config: dict[str, Any], owner: str = "The trial") -> Gradients:
    """Return what exchanges the gradients of the ranks that `communicator` connects.

    Parameters
    ----------
    config : dict
        The experiment configuration; ``optimizations.gradient_compression`` and ``distributed`` are used.
    """
    if communicator.size == 1:
        from det_native.pytorch.gradients import LocalGradients

        return LocalGradients()
    compress = bool((config.get("optimizations") or {}).get("gradient_compression", False))
    settings = config.get("distributed") or {}
    if settings.get("strategy") == "fsdp":
        from det_harness.frameworks.torch.gradients.sharded import ShardedGradients

        return ShardedGradients(communicator, owner, settings.get("fsdp_layers") or [], compress=compress)
    from det_harness.frameworks.torch.gradients.group import GroupGradients
    from det_harness.frameworks.torch.gradients.wire import GroupWire, HorovodWire
    from det_harness.ranks import horovod_group

    wire = HorovodWire() if horovod_group.is_asked_for(config) else GroupWire(communicator)
    return GroupGradients(communicator.size, wire, compress=compress)

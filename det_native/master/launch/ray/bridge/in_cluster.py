"""What runs in the cluster beside the agents: machines need not have this package for it, the code is sent to them."""

from __future__ import annotations

from typing import Any


def table() -> tuple[list[dict[str, Any]], dict[str, dict[str, float]], list[dict[str, Any]]]:
    """Return the nodes of the cluster, what is free of the resources of each, and all placement groups."""
    import ray
    from ray._private.state import available_resources_per_node
    from ray.util.placement_group import placement_group_table

    return ray.nodes(), available_resources_per_node(), list(placement_group_table().values())


def request(bundles: list[dict[str, float]]) -> None:
    """Tell the autoscaler what is to be there; it holds until the next call."""
    from ray.autoscaler.sdk import request_resources

    request_resources(bundles=bundles)


def bundles_of(slots: int, accelerator: str, resource: str = "CPU") -> list[dict[str, float]]:
    """Return what to ask the autoscaler for, for so many slots."""
    if accelerator:
        # A machine with such a GPU has a trace of this resource for each.
        return [{"GPU": 1, f"accelerator_type:{accelerator}": 0.001}] * slots
    return [{resource: 1}] * slots


class SlotHolder:
    """Holds the slots of a run on one machine, and knows which GPUs they are."""

    def gpus(self) -> list[str]:
        """Return the GPUs of these slots, as ``CUDA_VISIBLE_DEVICES`` names them."""
        import ray

        return [str(gpu) for gpu in ray.get_gpu_ids()]

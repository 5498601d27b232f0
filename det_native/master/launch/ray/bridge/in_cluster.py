"""What runs in the cluster beside the agents: machines need not have this package for it, the code is sent to them."""

from __future__ import annotations

from typing import Any

Table = tuple[list[dict[str, Any]], dict[str, dict[str, float]], list[dict[str, Any]], dict[str, float], list[str]]


def table(namespace: str) -> Table:
    """Return the nodes, what is free of the resources of each, all placement groups, and the nodes that are being
    drained, each with the seconds that are left to it (infinitely many where nobody has said), and who the other
    masters are.
    """
    import ray
    from ray._private.state import available_resources_per_node
    from ray.util.placement_group import placement_group_table

    groups = list(placement_group_table().values())
    return ray.nodes(), available_resources_per_node(), groups, draining(), others(namespace)


def draining() -> dict[str, float]:
    """Return the nodes that are being drained, each with the seconds that are left to it."""
    import time

    from ray._private.state import state
    from ray._private.worker import global_worker
    from ray.core.generated.autoscaler_pb2 import DRAINING, GetClusterResourceStateReply

    reply = GetClusterResourceStateReply.FromString(global_worker.gcs_client.get_cluster_resource_state(timeout_s=10))
    if all(node.status != DRAINING for node in reply.cluster_resource_state.node_states):
        return {}
    # Asked only if there are some: the call ends this process if the head of the cluster goes meanwhile.
    now = time.time()
    return {
        node_id: milliseconds / 1000 - now if milliseconds > 0 else float("inf")
        for node_id, milliseconds in state.get_draining_nodes().items()
    }


def introduce(namespace: str, who: str) -> None:
    """Leave word in the cluster of whose master the actors of a namespace are."""
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(f"{namespace}/master".encode(), who.encode(), overwrite=True)


def others(namespace: str) -> list[str]:
    """Return who the other masters are that have actors in the cluster."""
    from ray.experimental.internal_kv import _internal_kv_get
    from ray.util import list_named_actors

    kind = namespace.partition("-")[0] + "-"
    present = {str(actor["namespace"]) for actor in list_named_actors(all_namespaces=True)} - {namespace}
    words = [_internal_kv_get(f"{each}/master".encode()) for each in sorted(present) if each.startswith(kind)]
    return [word.decode() for word in words if word]


def request(bundles: list[dict[str, float]], labels: list[dict[str, str]]) -> None:
    """Tell the autoscaler what is to be there, each bundle on one machine with these labels, until the next call.

    Ray's earlier autoscaler knows no labels; Ray leaves them out for it.
    """
    from ray.autoscaler.sdk import request_resources

    request_resources(bundles=bundles, bundle_label_selectors=labels)


class SlotHolder:
    """Holds the slots of a run on one machine, and knows which GPUs they are."""

    def gpus(self) -> list[str]:
        """Return the GPUs of these slots, as ``CUDA_VISIBLE_DEVICES`` names them."""
        import ray

        return [str(gpu) for gpu in ray.get_gpu_ids()]

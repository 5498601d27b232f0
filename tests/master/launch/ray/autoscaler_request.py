"""What the autoscaler of a cluster has been asked for: ``autoscaler_request.py ADDRESS``.

Prints, for each line of its input, what the autoscaler of now and the earlier one are asked for, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Print it."""
    from ray._private.ray_constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
    from ray._raylet import GcsClient
    from ray.core.generated.autoscaler_pb2 import GetClusterResourceStateReply

    client = GcsClient(address=sys.argv[1])
    for _ in sys.stdin:
        earlier = client.internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL, None)
        state = GetClusterResourceStateReply.FromString(client.get_cluster_resource_state(timeout_s=10))
        constraints = state.cluster_resource_state.cluster_resource_constraints
        now = [_request(each) for constraint in constraints for each in constraint.resource_requests]
        print(json.dumps({"now": now, "earlier": json.loads(earlier or b"[]")}), flush=True)


def _request(each: Any) -> dict[str, Any]:
    labels = {
        constraint.label_key: list(constraint.label_values)
        for selector in each.request.label_selectors
        for constraint in selector.label_constraints
    }
    return {"count": each.count, "resources": dict(each.request.resources_bundle), "labels": labels}


if __name__ == "__main__":
    main()

"""A node of a Ray cluster, in processes below this one, until its standard input ends: ``ray_node.py JSON``.

``ray start`` takes this machine's own address in the place of loopback, and other machines could reach that.
"""

from __future__ import annotations

import json
import os
import select
import sys

_LOOK_SECONDS = 0.2


def main() -> None:
    """Start the node in a process that is nobody's child, print its number and the node's id, and wait."""
    if os.fork():
        os._exit(0)

    from ray._private.node import Node
    from ray._private.parameter import RayParams

    given = json.loads(sys.argv[1])
    head = given.pop("head")
    # The smallest that Ray takes; no test puts objects there.
    params = RayParams(object_store_memory=80_000_000, min_worker_port=0, max_worker_port=0, **given)
    params.include_log_monitor = False
    if not head:
        params.node_manager_port = 0
        params.dashboard_agent_listen_port = None
    node = Node(params, head=head, shutdown_at_exit=True, spawn_reaper=True)
    print(os.getpid(), node.node_id, flush=True)
    # A Raylet that ends must be gone for its workers to end, too, and no zombie.
    while not select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
        node.dead_processes()


if __name__ == "__main__":
    main()

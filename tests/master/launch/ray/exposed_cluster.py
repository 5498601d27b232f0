"""A cluster without a token, which a machine joins that others reach: ``exposed_cluster.py FOLDER ADDRESS``.

It runs where nobody else is in the network. What happens is printed as JSON, a line each.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from launcher_contract import KIND, exits, output, trial_job, until
from ray_cluster import RayCluster

from det_native.master.launch.ray.launcher import RayLauncher
from det_native.schema.home import Home


def main() -> None:
    """Do it."""
    folder, address = Path(sys.argv[1]), sys.argv[2]
    (folder / "runs").mkdir()
    cluster = RayCluster(2)
    try:
        os.environ.update({name: value for name, value in cluster.environment.items() if name.startswith("RAY_")})
        launcher = RayLauncher(Home(folder), "unix:/nowhere/master.sock", cluster.address)
        try:
            _join_and_leave(cluster, launcher, folder / "runs", address)
        finally:
            launcher.close(kill_workers=True)
    finally:
        cluster.stop()


def _join_and_leave(cluster: RayCluster, launcher: RayLauncher, runs: Path, address: str) -> None:
    def wait_for(condition: Callable[[], bool]) -> None:
        until(lambda: (launcher.poll(), condition())[1], launcher)

    def start(run_id: str, action: str) -> None:
        launcher.start(run_id, trial_job(runs, run_id, action, text="said"), KIND, slots=[launcher.slots()[0].id])

    wait_for(lambda: len(launcher.slots()) == 2)
    start("earlier", "wait")
    output(launcher, "earlier", "waiting")
    joined = cluster.add_node(2, address=address)
    wait_for(lambda: bool(launcher.trouble()))
    _tell(trouble=launcher.trouble())
    start("refused", "say")
    _tell(refused=dataclasses.asdict(exits(launcher, "refused")["refused"]))
    cluster.kill_node(joined)
    wait_for(lambda: not launcher.trouble())
    start("later", "say")
    _tell(later=exits(launcher, "later")["later"].code, earlier="earlier" in launcher._runs)


def _tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()

"""A command on the machines of a Ray cluster: one process of ours on each, with all slots that the trial has there."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from faults import ended
from ray_cluster import RayCluster
from rig import ENTRY, RayMaster

from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

# No torch: what torchrun takes, and the Core API across machines.
SCRIPT = """
import os
import determined as det

info = det.get_cluster_info()
addresses, rank, counts = info.container_addrs, info.container_rank, info.container_slot_counts
print(f"machine {rank} of {len(addresses)}: slots {counts}, {len(info.slot_ids)} here,", end=" ")
print(f"torchrun {os.environ['PET_NODE_RANK']}/{os.environ['PET_NNODES']} x {os.environ['PET_NPROC_PER_NODE']}")
processes = det.core.DistributedContext(
    rank=rank,
    size=2,
    local_rank=0,
    local_size=1,
    cross_rank=rank,
    cross_size=2,
    chief_ip=addresses[0],
    pub_port=int(os.environ["PET_MASTER_PORT"]),
)
with det.core.init(distributed=processes) as context:
    found = context.distributed.gather(len(info.slot_ids))
    if rank == 0:
        context.train.report_validation_metrics(1, {"slots": sum(found)})
"""


def test_a_command_runs_once_on_each_machine_with_its_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = RayCluster(2, DET_AGENT_ENTRY=ENTRY, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    master = RayMaster(tmp_path, ray)
    master.slots = "2"  # of each machine
    try:
        ray.add_node(2)
        master.start("core")
        monkeypatch.setenv("DET_HOME", str(master.home.path))
        master.has_slots(4)
        (folder := tmp_path / "code").mkdir()
        (folder / "train.py").write_text(SCRIPT)
        config = {"entrypoint": "python3 train.py", "resources": {"slots_per_trial": 3}, "max_restarts": 0}
        (tmp_path / "config.yaml").write_text(json.dumps({**config, "searcher": {"name": "single", "metric": "slots"}}))
        printed = master.det("experiment", "create", str(tmp_path / "config.yaml"), str(folder), "--json")
        experiment = master.attach(json.loads(printed.splitlines()[-1])["id"])
        ended(experiment, ExperimentState.COMPLETED)
        assert experiment.trials[0].metrics("validation") == [{"batch": 1, "slots": 3}]
        lines = re.findall(
            r"machine (\d) of 2: slots (\[.*\]), (\d) here, torchrun (\S+) x (\d)", str(experiment.logs())
        )
        counts = json.loads(lines[0][1])
        assert sorted(counts) == [1, 2]
        expected = [(str(at), str(counts), str(counts[at]), f"{at}/2", str(counts[at])) for at in (0, 1)]
        assert sorted(lines) == expected
    finally:
        master.take_down()
        ray.stop()

"""A command on two machines: each runs it once, and a launch layer connects what it starts there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from command_scripts import DDP
from two_machines import two_machines

from det_native._version import PROTOCOL
from det_native.schema.job import TrialJob
from det_native.schema.loading import load_config
from det_native.schema.manifests import BundleManifest, Interpreter, Program

PROGRAM = Path(__file__).with_name("machine_program.py")
SECONDS = 200.0
ON = (0, 1)


def test_processes_on_two_machines_train_together(tmp_path: Path) -> None:
    config = load_config({"searcher": {"name": "single", "metric": "val_loss"}}, framework="core")
    with two_machines(tmp_path) as both:
        jobs = [
            TrialJob(
                protocol=PROTOCOL,
                directory=str(both.folder_of(rank, ON)),
                blobs=str(tmp_path / "blobs"),
                bundle=BundleManifest(
                    protocol=PROTOCOL,
                    interpreter=Interpreter(python="3.11", executable=""),
                    program=Program(kind="command", framework="core"),
                ),
                bundle_id="",
                checkpoints=str(tmp_path / "checkpoints"),
                master_url="",
                run_id=f"run{rank}",
                experiment_id=1,
                trial_id=1,
                config=config.model_dump(mode="json"),
                hparams={},
                trial_seed=0,
                gang=gang,
                slots=[1, 2],
                threads=rank + 1,
            ).model_dump(mode="json")
            for rank, gang in enumerate(both.gangs(ON))
        ]
        told = {
            "machines": [[machine.network, machine.address] for machine in both.machines],
            "jobs": jobs,
            "script": DDP,
            "command": ["python3", "-m", "determined.launch.torch_distributed", "python3", "train.py"],
        }
        path = tmp_path / "specification.json"
        path.write_text(json.dumps(told))
        path_of_tests = os.pathsep.join([str(PROGRAM.parents[2]), *sys.path])
        (tmp_path / "temporary").mkdir()
        environment = {**os.environ, "PYTHONPATH": path_of_tests, "TMPDIR": str(tmp_path / "temporary")}
        processes = [
            subprocess.Popen([sys.executable, str(PROGRAM), str(path), str(rank)], env=environment) for rank in ON
        ]
        try:
            codes = [process.wait(SECONDS) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        logs = [(Path(job["directory"]) / "output.log").read_text() for job in jobs]
    assert codes == [0, 0], "\n".join(logs)
    first, second = (json.loads((tmp_path / f"found.{rank}.json").read_text()) for rank in ON)
    assert "[rank=0] process 0 of 3" in logs[0]
    assert "[rank=2] process 2 of 3" in logs[1]
    assert (first["batches"], len(first["losses"]), first["checkpoints"]) == (5, 5, 1)
    assert (second["losses"], second["checkpoints"]) == ([], 0)
    [manifest] = (tmp_path / "checkpoints").glob("*/manifest.json")
    assert {"rank0", "rank1", "rank2"} <= {path.name for path in manifest.parent.iterdir()}

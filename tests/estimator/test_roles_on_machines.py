"""Roles of ``train_and_evaluate()`` on two machines: a worker on another one than the chief, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from det_harness.frameworks.tf_estimator import shared_folder
from det_harness.frameworks.tf_estimator.joining import in_its_role
from two_machines import two_machines

from det_native.errors import UnsupportedFeatureError
from det_native.schema.job import Gang
from det_native.schema.loading import load_config
from det_native.schema.roles import Role

PROGRAM = Path(__file__).with_name("roles_program.py")
SECONDS = 200.0


def config(*, trusted: bool = True) -> dict[str, Any]:
    distributed = {
        "strategy": "tf_config",
        "roles": {"chief": 1, "worker": 1, "ps": 1},
        "trusted_network": trusted,
    }
    searcher = {"name": "single", "metric": "loss", "max_length": {"batches": 40}}
    given = {"distributed": distributed, "searcher": searcher, "hyperparameters": {"global_batch_size": 4}}
    return load_config(given, local=False).model_dump(mode="json")


def run(folder: Path, on: Sequence[int]) -> list[dict[str, Any]]:
    with two_machines(folder) as both:
        told = {
            "machines": [[both.machines[number].network, both.machines[number].address] for number in on],
            "gangs": both.gangs(on),
            "config": config(),
            "steps": 40,
        }
        path = folder / "specification.json"
        path.write_text(json.dumps(told))
        environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])}
        processes = [
            subprocess.Popen([sys.executable, str(PROGRAM), str(path), str(rank)], env=environment)
            for rank in range(len(on))
        ]
        try:
            codes = [process.wait(SECONDS) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    assert codes == [0] * len(on)
    return [json.loads((folder / f"found.{rank}.json").read_text()) for rank in range(len(on))]


@pytest.mark.long
def test_a_worker_on_another_machine_trains_the_variables_of_the_chiefs(tmp_path: Path) -> None:
    chief, *_ = found = run(tmp_path, (0, 1, 0))
    assert chief["batches"] >= 40
    assert chief["kept"][-1] == chief["batches"]
    hosts = {role: [address.partition(":")[0] for address in given] for role, given in chief["addresses"].items()}
    assert hosts == {"chief": ["10.77.0.1"], "worker": ["10.77.0.2"], "ps": ["10.77.0.1"]}
    assert [one["addresses"] for one in found] == [chief["addresses"]] * 3


def test_a_network_that_is_not_trusted_is_refused_on_several_machines(tmp_path: Path) -> None:
    gang = Gang(
        rank=1, size=3, local_rank=0, local_size=1, cross_rank=1, cross_size=2, rendezvous=str(tmp_path / "rendezvous")
    )
    refused = pytest.raises(UnsupportedFeatureError, match="so that they cannot have a network of their own")
    with refused, in_its_role(gang, config(trusted=False), tmp_path):
        pass


def test_a_role_that_needs_the_chiefs_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_folder, "_SECONDS", 0.0)
    own, other = tmp_path / "a", tmp_path / "b"
    own.mkdir()
    other.mkdir()
    with shared_folder.marked(own) as mark:
        shared_folder.check_shared(own, mark, Role("ps", 0))
        shared_folder.check_shared(other, mark, Role("worker", 0))
        with pytest.raises(UnsupportedFeatureError, match=r"The ps 0 is on another machine .* model_dir that all"):
            shared_folder.check_shared(other, mark, Role("ps", 0))
        with pytest.raises(UnsupportedFeatureError, match="reads the checkpoints in the estimator's folder"):
            shared_folder.check_shared(other, mark, Role("evaluator", 0))
    assert not list(own.iterdir())

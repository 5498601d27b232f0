"""Training on two machines, one slot on each: the bits of two slots on one machine, and the end of one noticed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from forked_programs import SECONDS, ForkedPrograms
from rank_rig import NEEDS_HOROVOD, PROGRAM, largest_difference, run_ranks
from two_machines import TwoMachines, two_machines

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


PLAIN = {"plain": {"trial": "PlainTrial"}}
SHARDED: dict[str, Any] = {
    "trial": "PlainTrial",
    "made": {"distributed": {"strategy": "fsdp"}, "min_checkpoint_period": {"batches": 4}},
}


@dataclass
class Ended:
    """How the processes on the machines ended, by rank."""

    codes: list[int]
    outputs: list[str]
    folders: list[Path]

    def results(self, case: str) -> list[dict[str, Any]]:
        paths = [folder / f"{case}.{rank}.pt" for rank, folder in enumerate(self.folders)]
        assert all(path.exists() for path in paths), "\n".join(self.outputs)
        return [torch.load(path, weights_only=False) for path in paths]

    def error(self, rank: int) -> tuple[str, str]:
        kind, text = json.loads((self.folders[rank] / f"error.{rank}.json").read_text())
        return kind, text


def run_on(
    both: TwoMachines,
    folder: Path,
    cases: dict[str, dict[str, Any]],
    on: Sequence[int] = (0, 1),
    *,
    ranks: Sequence[int] | None = None,
    backend: str = "torch",
    deadline: float = 120.0,
) -> Ended:
    """Run cases with each rank on the machine that `on` names; like ``run_ranks``."""
    told = {
        "size": len(on),
        "cases": cases,
        "backend": backend,
        "deadline": deadline,
        "long_seconds": 60.0,
        "gangs": both.gangs(on),
        "machines": [[both.machines[number].network, both.machines[number].address] for number in on],
    }
    paths = [machine.folder / "specification.json" for machine in both.machines]
    for path in paths:
        path.write_text(json.dumps(told))
    ranks = range(len(on)) if ranks is None else ranks
    commands = [[str(PROGRAM), str(paths[on[rank]]), str(rank)] for rank in ranks]
    with ForkedPrograms.there("torch") as programs:
        codes, outputs = programs.run(folder, commands, {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")})
    return Ended(codes, outputs, [both.machines[number].folder for number in on])


def on_one(tmp_path: Path, cases: dict[str, dict[str, Any]], **options: Any) -> Any:
    folder = tmp_path / "one"
    folder.mkdir()
    return run_ranks(folder, cases, **options)


@pytest.mark.parametrize("backend", ["torch", pytest.param("horovod", marks=[NEEDS_HOROVOD, pytest.mark.long])])
def test_two_machines_train_to_the_bits_of_one(tmp_path: Path, backend: str) -> None:
    with two_machines(tmp_path) as both:
        apart = run_on(both, tmp_path, PLAIN, backend=backend)
    assert apart.codes == [0, 0], "\n".join(apart.outputs)
    together = on_one(tmp_path, PLAIN, backend=backend).results("plain")
    for rank, result in enumerate(apart.results("plain")):
        assert largest_difference(result["models"], together[rank]["models"]) == 0
        assert (result["training"], result["validation"]) == (together[rank]["training"], together[rank]["validation"])
        place = {**together[rank]["place"], "local_rank": 0, "agents": 2}
        assert result["place"] == place
    address, _, secret = (tmp_path / "a" / "rendezvous").read_text().partition(" ")
    assert address.startswith("10.77.0.1:")
    assert len(secret) == 64


@pytest.mark.parametrize("backend", ["torch", pytest.param("horovod", marks=[NEEDS_HOROVOD, pytest.mark.long])])
def test_a_process_that_is_killed_on_one_machine_is_noticed_on_the_other(tmp_path: Path, backend: str) -> None:
    dying = {"dying": {"trial": "Dying", "made": {"batches": 200, "hparams": {"how": "killed"}}}}
    with two_machines(tmp_path) as both:
        ended = run_on(both, tmp_path, dying, backend=backend, deadline=10 * SECONDS)
    assert ended.codes == [3, 9], "\n".join(ended.outputs)
    kind, text = ended.error(0)
    assert kind == "RankLostError"
    assert text.startswith("Another process of this trial has ended or does not answer")


@pytest.mark.long
def test_shards_of_another_machine_come_into_the_checkpoint(tmp_path: Path) -> None:
    with two_machines(tmp_path) as both:
        apart = run_on(both, tmp_path, {"sharded": SHARDED}, (0, 0, 1))
        assert apart.codes == [0, 0, 0], "\n".join(apart.outputs)
        assert not (tmp_path / "b" / "sharded").exists(), "only the first rank has checkpoints"
    result = apart.results("sharded")[0]
    assert result["checkpoints"]
    one = tmp_path / "one"
    one.mkdir()
    resumed = {"kind": "continued", "checkpoints": str(tmp_path / "a" / "sharded"), **SHARDED}
    found = run_ranks(one, {"resumed": resumed, "sharded": SHARDED}, size=3)
    assert found.codes == [0, 0, 0], "\n".join(found.outputs)
    assert largest_difference(result["models"], found.results("sharded")[0]["models"]) == 0
    assert largest_difference(result["models"], found.results("resumed")[0]["models"]) == 0


@pytest.mark.long
def test_a_machine_that_is_not_reached_is_named_with_what_to_look_at(tmp_path: Path) -> None:
    with two_machines(tmp_path) as both:
        both.machines[1].address, wrong = "10.88.0.9", both.machines[1].address
        ended = run_on(both, tmp_path, PLAIN, ranks=[1], deadline=1.0)
        assert ended.error(1)[0] == "UnreachableError"
        assert "as 10.88.0.9, but none of its network interfaces has this address" in ended.error(1)[1]
        assert f"wire ({wrong}" in ended.error(1)[1]
        both.machines[1].address = wrong
        (tmp_path / "b" / "rendezvous").write_text("10.77.0.1:9 secret")
        ended = run_on(both, tmp_path / "b", PLAIN, ranks=[1], deadline=1.0)
        kind, text = ended.error(1)
    assert kind == "UnreachableError"
    assert text.startswith("The machine at 10.77.0.2 does not reach 10.77.0.1 (port 9: Connection refused)")
    assert "distributed.interface" in text

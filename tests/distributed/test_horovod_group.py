"""Horovod among the processes of a trial: it finds them on loopback only, is tuned as told, and leaves nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from det_harness.frameworks.torch.gradients import gradients_of
from det_harness.ranks import horovod_group
from det_harness.ranks.communicator import OneProcess
from det_harness.ranks.horovod_group import horovod_joined
from det_harness.ranks.network import Network
from forked_programs import ForkedPrograms
from rank_rig import NEEDS_HOROVOD

from det_native.errors import MissingDependencyError, UnsupportedFeatureError
from det_native.pytorch.gradients import LocalGradients
from det_native.schema.job import Gang

pytestmark = pytest.mark.slow
NETWORK = Network("127.0.0.1", "lo")

PROGRAM = Path(__file__).with_name("horovod_program.py")
HOROVOD: dict[str, Any] = {"backend": "horovod"}
TUNED = {"tensor_fusion_threshold": 3, "tensor_fusion_cycle_time": 2, "auto_tune_tensor_fusion": False}

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def pair(tmp_path: Path) -> Run:
    """Run the program in two processes; returns what they found."""

    def run(optimizations: dict[str, Any], *, missing: bool = False) -> list[dict[str, Any]]:
        specification = tmp_path / "specification.json"
        config = {"distributed": HOROVOD, "optimizations": optimizations}
        specification.write_text(json.dumps({"config": config, "missing": missing}))
        commands = [[str(PROGRAM), str(specification), str(rank)] for rank in range(2)]
        with ForkedPrograms.there("torch") as programs:
            codes, outputs = programs.run(tmp_path, commands, {})
        assert codes == [0, 0], "\n".join(outputs)
        return [json.loads((tmp_path / f"found.{rank}.json").read_text()) for rank in range(2)]

    return run


def tuning_of(found: dict[str, Any]) -> dict[str, str]:
    """Return the variables that Horovod was tuned by when it began."""
    names = ("HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME", "HOROVOD_AUTOTUNE")
    return {name: value for name, value in found["at_init"]["variables"].items() if name in names}


@NEEDS_HOROVOD
def test_it_is_tuned_as_told_listens_on_loopback_only_and_leaves_nothing(pair: Run) -> None:
    ranks = pair(TUNED)
    for rank, found in enumerate(ranks):
        assert tuning_of(found) == {"HOROVOD_FUSION_THRESHOLD": "3145728", "HOROVOD_CYCLE_TIME": "2"}
        assert found["place"] == [rank, 2, rank, 1]
        assert found["sum"] == [3.0]
        for moment in ("at_init", "within"):
            assert set(found[moment]["listening"]) == {"127.0.0.1"}
        assert "HOROVOD_RANK" in found["at_init"]["variables"]
        # What user code starts, or looks at, is not told to be a part of this.
        assert not [name for name in found["within"]["variables"] if name.startswith("HOROVOD_")]
        assert found["within"]["threads"] == found["before"]["threads"]
        assert found["after"] == {**found["before"], "listening": []}
        assert found["ended"]
    # Who is where is told by the first one, while they begin.
    assert ["horovod-rendezvous" in found["at_init"]["threads"] for found in ranks] == [True, False]


@NEEDS_HOROVOD
def test_it_may_tune_itself(pair: Run) -> None:
    for found in pair({**TUNED, "auto_tune_tensor_fusion": True}):
        # What is given besides, Horovod would not tune.
        assert tuning_of(found) == {"HOROVOD_AUTOTUNE": "1"}
        assert found["sum"] == [3.0]


def test_where_it_is_not_installed_every_process_says_what_to_run(pair: Run) -> None:
    for found in pair({}, missing=True):
        assert found["error"] == "MissingDependencyError"
        assert f"which is not installed in the Python that trains ({sys.executable})" in found["text"]
        assert f"run  VENV={sys.prefix} sh " in found["text"]
        assert "\n" not in found["text"]
        assert found["left"]["variables"] == {}


def _gang(tmp_path: Path) -> Gang:
    return Gang(rank=0, size=2, local_rank=0, local_size=2, rendezvous=str(tmp_path / "meeting"))


def test_one_that_was_not_built_for_pytorch_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "horovod"]:
        monkeypatch.delitem(sys.modules, name)
    for part in ("tensorflow", "torch"):
        (tmp_path / "horovod" / part).mkdir(parents=True)
        (tmp_path / "horovod" / part / "__init__.py").touch()
    (tmp_path / "horovod" / "__init__.py").touch()
    (tmp_path / "horovod" / "tensorflow" / "mpi_lib.cpython-311-x86_64-linux-gnu.so").touch()
    monkeypatch.syspath_prepend(tmp_path)
    refused = pytest.raises(MissingDependencyError, match="needs Horovod, built for PyTorch")
    with refused, horovod_joined(_gang(tmp_path), OneProcess(), {"distributed": HOROVOD}, deadline=1.0):
        pass
    assert "horovod" not in sys.modules


@NEEDS_HOROVOD
def test_gpus_need_one_with_nccl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import horovod.torch

    if horovod.torch.nccl_built():
        pytest.skip("The Horovod here has NCCL.")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    refused = pytest.raises(UnsupportedFeatureError, match="built without NCCL: build it with HOROVOD_GPU_OPERATIONS")
    with refused, horovod_joined(_gang(tmp_path), OneProcess(), {"distributed": HOROVOD}, deadline=1.0):
        pass


def test_one_slot_needs_no_horovod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "horovod", None)
    assert isinstance(gradients_of(OneProcess(), {"distributed": HOROVOD}), LocalGradients)


def test_variables_of_the_users_own_count_more_than_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROVOD_CYCLE_TIME", "2.5")
    assert horovod_group._tuning({}) == {"HOROVOD_CYCLE_TIME": "2.5", "HOROVOD_FUSION_THRESHOLD": str(64 << 20)}
    monkeypatch.setenv("HOROVOD_AUTOTUNE", "1")
    assert horovod_group._tuning({}) == {"HOROVOD_AUTOTUNE": "1"}


@NEEDS_HOROVOD
def test_an_optimizer_of_horovods_own_is_refused(tmp_path: Path) -> None:
    """In a process of its own: it wants Horovod to have begun."""
    (tmp_path / "program.py").write_text("""
import horovod.torch as hvd
import torch
from det_native.errors import ArgumentError
from det_native.pytorch.wrapping import check_optimizer

hvd.init()
model = torch.nn.Linear(2, 2)
made = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
try:
    check_optimizer("Made", made, [], 1)
except ArgumentError as error:
    print(error)
hvd.shutdown()
""")
    with ForkedPrograms.there("torch") as programs:
        codes, (output,) = programs.run(tmp_path, [[str(tmp_path / "program.py")]], {})
    assert codes == [0], output
    assert "wrap_optimizer() was given a SGD of hvd.DistributedOptimizer()" in output
    assert "give it the optimizer inside" in output

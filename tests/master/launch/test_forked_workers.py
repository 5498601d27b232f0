"""Workers that are forked from a process that has imported their framework: real processes."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from launcher_contract import KIND, LauncherContract, children_of, exits, gone, output, trial_job, until

from det_native.master.launch import local_run, zygote
from det_native.master.launch.base import WorkerKind
from det_native.master.launch.local import LocalLauncher
from det_native.master.launch.policy import Policy

pytestmark = pytest.mark.slow

PROMPT = Policy(settle=0.0)
Make = Callable[..., LocalLauncher]


def _warm(launcher: LocalLauncher, count: int, kind: WorkerKind = KIND) -> None:
    launcher.warm(kind)
    until(lambda: (launcher.poll(), launcher.standbys().get(kind.framework, 0) == count)[1], launcher)


def _zygote(launcher: LocalLauncher) -> int:
    (only,) = launcher._pool.zygotes
    return only.process.pid


def _facts(directory: Path, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / run_id / "facts.json").read_text())
    return found


def _warnings(caplog: pytest.LogCaptureFixture) -> str:
    return " ".join(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


@pytest.fixture
def forking(make: Make) -> LocalLauncher:
    """A launcher on one slot with its standbys forked."""
    launcher = make(slots=1, policy=PROMPT)
    _warm(launcher, 2)
    return launcher


class TestForkedWorkers(LauncherContract):
    """The contract."""

    @pytest.fixture
    def launcher(self, forking: LocalLauncher, monkeypatch: pytest.MonkeyPatch, rank_grace: float) -> LocalLauncher:
        monkeypatch.setattr(local_run, "RANK_GRACE_SECONDS", rank_grace)
        return forking


class TestForks:
    def test_one_is_forked_at_once_where_none_waits_and_while_another_starts(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=Policy(settle=3600.0))
        _warm(launcher, 2)
        handle = launcher.start("r1", trial_job(tmp_path, "r1", ["hold"] * 3), KIND, ranks=3)
        assert handle["standby"] == "ready, ready, forked"
        until(lambda: (launcher.poll(), launcher.standbys() == {"python": 2})[1], launcher)
        for rank in range(3):
            output(launcher, "r1", "waiting", rank)
        launcher.kill("r1")
        exits(launcher, "r1")

    def test_a_program_sees_the_same_in_a_fork_as_in_a_fresh_process(self, make: Make, tmp_path: Path) -> None:
        found = []
        for run_id, forks in (("fresh", False), ("forked", True)):
            launcher = make(slots=1, policy=PROMPT, forks=forks)
            _warm(launcher, 2)
            launcher.start(run_id, trial_job(tmp_path, run_id, "portrait"), KIND)
            exits(launcher, run_id)
            found.append(_facts(tmp_path, run_id))
            own = {name: found[-1]["environment"].pop(name) for name in ("DET_WORKER", "TMPDIR")}
            assert found[-1].pop("temporary") == own["TMPDIR"]
            assert found[-1].pop("drawn") != 0.0
        # A fork has those threads of its libraries (OpenBLAS, say) only once they compute.
        assert found[0].pop("threads") >= found[1].pop("threads") == 1
        assert found[0] == found[1]

    def test_nothing_of_one_reaches_another(self, forking: LocalLauncher, tmp_path: Path) -> None:
        for run_id in ("r1", "r2", "r3"):
            forking.start(run_id, trial_job(tmp_path, run_id, "portrait", variables={f"ONLY_{run_id}": "1"}), KIND)
            exits(forking, run_id)
        found = [_facts(tmp_path, run_id) for run_id in ("r1", "r2", "r3")]
        assert [facts["marks"] for facts in found] == [[], [], []]
        assert len({facts["drawn"] for facts in found}) == 3
        assert len({facts["temporary"] for facts in found}) == 3
        assert not any(Path(facts["temporary"]).exists() for facts in found)
        assert [[name for name in facts["environment"] if name.startswith("ONLY_")] for facts in found] == [
            ["ONLY_r1"],
            ["ONLY_r2"],
            ["ONLY_r3"],
        ]

    def test_a_program_may_fork_and_spawn_processes(self, forking: LocalLauncher, tmp_path: Path) -> None:
        forking.start("r1", trial_job(tmp_path, "r1", "relatives"), KIND)
        assert exits(forking, "r1")["r1"].code == 0
        assert forking.logs("r1", 0).text == "fork [1, 2, 3]\nspawn [1, 2, 3]\n"

    def test_what_it_has_forked_ends_with_it_and_leaves_no_zombie(self, forking: LocalLauncher, tmp_path: Path) -> None:
        forking.start("r1", trial_job(tmp_path, "r1", "daemon"), KIND)
        (child,) = children_of(output(forking, "r1", "waiting"))
        forking.kill("r1")
        exits(forking, "r1")
        assert gone(child)
        forking.start("r2", trial_job(tmp_path, "r2", "succeed"), KIND)
        exits(forking, "r2")
        zombies = [one.pid for one in psutil.Process().children() if one.status() == psutil.STATUS_ZOMBIE]
        assert child not in zombies

    def test_one_is_adopted_by_the_next_master(self, forking: LocalLauncher, make: Make, tmp_path: Path) -> None:
        handle = forking.start("r1", trial_job(tmp_path, "r1", "hold"), KIND)
        assert handle["standby"] == "ready"
        output(forking, "r1", "waiting")
        forking.close(kill_workers=False)
        second = make(policy=PROMPT)
        assert second.adopt("r1", json.loads(json.dumps(handle)))
        assert second.poll() == []
        second.kill("r1", grace=0)
        assert exits(second, "r1")["r1"].code is None
        os.waitpid(handle["pid"], 0)

    @pytest.mark.parametrize("framework", ["torch", "keras"])
    @pytest.mark.long
    def test_a_fork_computes_what_a_fresh_process_does(self, make: Make, tmp_path: Path, framework: str) -> None:
        kind = WorkerKind(framework)
        forked, fresh = make(slots=1, policy=PROMPT), make(slots=1, policy=Policy(settle=3600.0), forks=False)
        _warm(forked, 2, kind)
        runs = {"forked 1": forked, "forked 2": forked, "fresh": fresh}
        for run_id, launcher in runs.items():
            job = trial_job(tmp_path, run_id, "train", framework=framework, threads=2)
            handle = launcher.start(run_id, job, kind)
            assert handle["standby"] == ("ready" if launcher is forked else "cold")
            assert exits(launcher, run_id)[run_id].code == 0, launcher.logs(run_id, 0).text
        weights = {(tmp_path / run_id / "weights").read_bytes() for run_id in runs}
        assert len(weights) == 1


class TestZygotes:
    def test_one_that_is_killed_in_the_middle_of_a_run_loses_nothing(
        self, forking: LocalLauncher, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        for run_id in ("r1", "r2"):
            forking.start(run_id, trial_job(tmp_path, run_id, "hold"), KIND)
            output(forking, run_id, "waiting")
        killed = _zygote(forking)
        os.kill(killed, signal.SIGKILL)
        until(lambda: (forking.poll(), str(killed) in _warnings(caplog))[1], forking)
        (tmp_path / "r1" / "go").write_text("0")
        os.kill(forking._runs["r2"].workers[0].process.pid, signal.SIGKILL)
        found = exits(forking, "r1", "r2")
        assert (found["r1"].code, found["r2"].code) == (0, -9)
        assert "peak memory" in found["r1"].detail
        forking.start("r3", trial_job(tmp_path, "r3", ["succeed"] * 3), KIND, ranks=3)
        assert exits(forking, "r3")["r3"].code == 0
        _warm(forking, 2)
        assert _zygote(forking) != killed

    def test_one_that_does_not_answer_is_replaced_by_fresh_processes(
        self,
        forking: LocalLauncher,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(zygote, "ANSWER_SECONDS", 0.3)
        stopped = _zygote(forking)
        os.kill(stopped, signal.SIGSTOP)
        handle = forking.start("r1", trial_job(tmp_path, "r1", ["succeed"] * 3), KIND, ranks=3)
        assert handle["standby"] == "ready, ready, cold"
        assert exits(forking, "r1")["r1"].code == 0
        assert f"process {stopped}, is ended" in _warnings(caplog)
        assert gone(stopped)

    def test_where_an_import_starts_threads_no_process_is_forked(
        self, make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        launcher = make(slots=1, policy=PROMPT, entry="entries_with_a_thread:run")
        _warm(launcher, 2)
        assert "1 threads beside its own" in _warnings(caplog)
        assert launcher._pool.zygotes == ()
        assert launcher.start("r1", trial_job(tmp_path, "r1", "succeed"), KIND)["standby"] == "ready"
        assert exits(launcher, "r1")["r1"].code == 0

    def test_workers_on_gpus_are_fresh_processes(self, make: Make) -> None:
        launcher = make(slots=1, device="cuda", policy=PROMPT)
        _warm(launcher, 2)
        assert launcher._pool.zygotes == ()

"""Workers that an earlier master has left: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launch_entries import SLEEPER
from launcher_contract import KIND, children_of, exits, gone, output, ranks_of, trial_job, until

from det_native.master.launch import local_run
from det_native.master.launch.local import LocalLauncher
from det_native.master.launch.policy import Policy
from det_native.schema.rest import ExitReport
from det_native.schema.states import ExitReason

pytestmark = pytest.mark.slow

PROMPT = Policy(settle=0.0)
Make = Callable[..., LocalLauncher]


class TestMasterGone:
    def test_a_worker_lives_on_and_is_adopted(self, make: Make, tmp_path: Path) -> None:
        first = make(policy=PROMPT)
        handle = first.start("r1", trial_job(tmp_path, "r1", "wait", family=True), KIND)
        children = children_of(output(first, "r1", "waiting"))
        first.close(kill_workers=False)
        assert not gone(handle["pid"])
        second = make(policy=PROMPT)
        assert second.adopt("r1", json.loads(json.dumps(handle)))
        assert second.poll() == []
        assert "waiting" in second.logs("r1", 0).text
        second.kill("r1", grace=5)
        ended = exits(second, "r1")["r1"]
        assert ended.code is None
        until(lambda: all(gone(pid) for pid in [handle["pid"], *children]))
        os.waitpid(handle["pid"], 0)

    def test_a_worker_that_ended_meanwhile_is_not_adopted_but_can_be_read(self, make: Make, tmp_path: Path) -> None:
        first = make(policy=PROMPT)
        handle = first.start("r1", trial_job(tmp_path, "r1", "say", text="last words"), KIND)
        exits(first, "r1")
        second = make(policy=PROMPT)
        assert not second.adopt("r1", handle)
        assert second.logs("r1", 0).text == "last words\n"
        assert second.poll() == []

    def test_another_process_with_the_same_number_is_not_adopted(self, make: Make, tmp_path: Path) -> None:
        launcher = make(policy=PROMPT)
        handle = launcher.start("r1", trial_job(tmp_path, "r1", "wait"), KIND)
        output(launcher, "r1", "waiting")
        with subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True) as foreign:
            none = {"marker": "of-another-worker", "temporary": str(tmp_path / "none")}
            stranger = {**handle, **none, "pid": foreign.pid}
            other = make(policy=PROMPT)
            assert not other.adopt("r2", stranger)
            assert not other.adopt("r3", {**stranger, "mark": "another-boot:1"})
            assert foreign.poll() is None
            foreign.kill()
        assert not gone(handle["pid"])

    def test_a_job_still_on_its_way_is_handed_over_before_the_launcher_goes(self, make: Make, tmp_path: Path) -> None:
        launcher = make(policy=PROMPT)
        job = trial_job(tmp_path, "r1", "say", text="x" * 2_000_000)
        handle = launcher.start("r1", job, KIND)
        launcher.close(kill_workers=False)
        os.waitpid(handle["pid"], 0)
        assert (tmp_path / "r1" / "output.log").stat().st_size == 2_000_001
        assert not make().adopt("r1", handle)


class TestGangOfAnEarlierMaster:
    @pytest.fixture
    def left(self, make: Make, tmp_path: Path) -> dict[str, Any]:
        """The handle of two ranks that wait, left by a launcher that is gone."""
        first = make(policy=PROMPT)
        handle = first.start("r1", trial_job(tmp_path, "r1", ["hold", "hold"]), KIND, ranks=2)
        for rank in range(2):
            output(first, "r1", "waiting", rank)
        first.close(kill_workers=False)
        assert not any(gone(pid) for pid in ranks_of(handle))
        found: dict[str, Any] = json.loads(json.dumps(handle))
        return found

    def test_all_ranks_are_adopted_and_die_together(
        self, left: dict[str, Any], make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(local_run, "RANK_GRACE_SECONDS", 0.5)
        second = make(policy=PROMPT)
        assert second.adopt("r1", left)
        assert second.poll() == []
        assert "waiting" in second.logs("r1", 0, 1).text
        os.kill(ranks_of(left)[1], signal.SIGKILL)
        os.waitpid(ranks_of(left)[1], 0)
        assert exits(second, "r1")["r1"].detail.startswith("rank 1 of 2: the worker is gone")
        assert gone(ranks_of(left)[0])
        os.waitpid(ranks_of(left)[0], 0)

    def test_one_that_failed_meanwhile_takes_the_others_with_it(
        self, left: dict[str, Any], make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(local_run, "RANK_GRACE_SECONDS", 0.5)
        os.kill(ranks_of(left)[0], signal.SIGKILL)
        os.waitpid(ranks_of(left)[0], 0)
        second = make(policy=PROMPT)
        assert second.adopt("r1", left)
        assert exits(second, "r1")["r1"].detail == "rank 0 of 2: it ended while the master was away"
        assert gone(ranks_of(left)[1])
        os.waitpid(ranks_of(left)[1], 0)

    def test_one_that_came_to_its_end_meanwhile_leaves_the_others_alone(
        self, left: dict[str, Any], make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(local_run, "RANK_GRACE_SECONDS", 0.0)
        done = ExitReport(seq=1, reason=ExitReason.COMPLETED, batch=4).model_dump_json()
        for rank, folder in enumerate((tmp_path / "r1", tmp_path / "r1" / "rank-1")):
            if rank == 1:
                second = make(policy=PROMPT)
                assert second.adopt("r1", left)
                assert second.poll() == []
                assert not gone(ranks_of(left)[1])
            (folder / "exit.json").write_text(done)
            (folder / "go").write_text("0")
            os.waitpid(ranks_of(left)[rank], 0)
        assert "rank 0 of 2" in exits(second, "r1")["r1"].detail

    def test_of_a_run_that_is_gone_the_output_of_all_ranks_can_be_read(
        self, left: dict[str, Any], make: Make, tmp_path: Path
    ) -> None:
        for rank, folder in enumerate((tmp_path / "r1", tmp_path / "r1" / "rank-1")):
            (folder / "go").write_text("0")
            os.waitpid(ranks_of(left)[rank], 0)
        second = make(policy=PROMPT)
        assert not second.adopt("r1", left)
        assert [second.logs("r1", 0, rank).text for rank in range(2)] == ["waiting\n"] * 2

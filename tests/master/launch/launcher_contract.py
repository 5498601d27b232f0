"""What every launcher must do, as a class of tests: derive, and give a ``launcher`` fixture whose workers run
``launch_entries:run``.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from det_native import PROTOCOL
from det_native.master.launch.base import Exit, Launcher, WorkerKind
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.ranks import rank_folder

KIND = WorkerKind("python")
BUNDLE = BundleManifest(
    protocol=PROTOCOL,
    interpreter=Interpreter(python="3.11.0", executable=""),
    program=Program(kind="cells", framework="torch"),
)
_DEADLINE_SECONDS = 60.0
_numbers = itertools.count(1)


def trial_job(directory: Path, run_id: str, action: str | list[str], **fields: Any) -> TrialJob:
    """Return a job for ``launch_entries``; `fields` that ``TrialJob`` lacks become hyperparameters.

    `action` is one for all processes of the run, or one for each.
    """
    own = {name: fields.pop(name) for name in ("devices", "threads", "variables", "bundle") if name in fields}
    return TrialJob(
        protocol=PROTOCOL,
        directory=str(directory / run_id),
        blobs="",
        bundle=own.pop("bundle", BUNDLE),
        bundle_id="0" * 64,
        checkpoints="",
        master_url="http://127.0.0.1:1",
        token="token-of-the-run",
        run_id=run_id,
        experiment_id=1,
        trial_id=1,
        config={},
        hparams={"action": action, **fields},
        trial_seed=0,
        **own,
    )


def until(condition: Callable[[], Any], launcher: Launcher | None = None) -> Any:
    """Drive the launcher until the condition gives something true, and return that."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it did not happen"
        wait = getattr(launcher, "wait", None)
        if wait is not None:
            wait(0.05)
        else:
            time.sleep(0.02)


def exits(launcher: Launcher, *run_ids: str) -> dict[str, Exit]:
    """Drive the launcher until these runs have ended."""
    found: dict[str, Exit] = {}

    def all_ended() -> bool:
        for ended in launcher.poll():
            assert ended.run_id not in found, "an end was told twice"
            found[ended.run_id] = ended
        return set(run_ids) <= set(found)

    until(all_ended, launcher)
    return found


def output(launcher: Launcher, run_id: str, until_text: str, rank: int = 0) -> str:
    """Drive the launcher until the process has written `until_text`; return all it has written."""
    until(lambda: (launcher.poll(), until_text in launcher.logs(run_id, 0, rank).text)[1], launcher)
    return launcher.logs(run_id, 0, rank).text


def ranks_of(handle: dict[str, Any]) -> list[int]:
    """Return the process numbers of a run's ranks."""
    return [handle["pid"], *(peer["pid"] for peer in handle["peers"])]


def children_of(text: str) -> list[int]:
    """Read the numbers of the processes that ``launch_entries`` started."""
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("child ")]


def gone(pid: int) -> bool:
    """Return whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def facts_of(launcher: Launcher, run_id: str, rank: int = 0) -> dict[str, Any]:
    """Return what a process of a run that has ended has seen of itself."""
    found: dict[str, Any] = json.loads(launcher.logs(run_id, 0, rank).text)
    return found


class LauncherContract:
    """The contract. A derived class defines the fixture ``launcher``, which keeps to `rank_grace`."""

    #: Of each of two ranks on one machine whose job has six.
    threads = "3"

    def folder(self, directory: Path, run_id: str, rank: int = 0) -> Path:
        """Return the folder in which a process of a run has its files."""
        return rank_folder(directory / run_id, rank)

    def pids(self, launcher: Launcher, handle: dict[str, Any]) -> list[int]:
        """Return the process numbers of a run's ranks."""
        return ranks_of(handle)

    @pytest.fixture(autouse=True)
    def _run_ids(self) -> None:
        """Name the runs of the test; a launcher that several tests use is given no name twice, as by a master."""
        number = next(_numbers)
        self.r1, self.r2, self.c1 = f"r{number}", f"second-{number}", f"c{number}"

    @pytest.fixture
    def rank_grace(self) -> float:
        """Seconds that the ranks of a run have to end by themselves once one of them has failed."""
        return 0.5

    def test_a_worker_runs_its_job_in_its_own_folder(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "facts"), KIND)
        assert exits(launcher, self.r1)[self.r1].code == 0
        facts = facts_of(launcher, self.r1)
        assert facts["cwd"] == str(self.folder(tmp_path, self.r1) / "work")
        assert facts["session"] == facts["pid"]
        assert facts["stdin"] == ""

    def test_a_check_runs_too(self, launcher: Launcher, tmp_path: Path) -> None:
        job = CheckJob(protocol=PROTOCOL, directory=str(tmp_path / self.c1), blobs="", bundle=BUNDLE)
        launcher.start(self.c1, job, KIND)
        assert exits(launcher, self.c1)[self.c1].code == 0
        assert (tmp_path / self.c1 / "result.json").exists()

    def test_a_job_larger_than_a_pipe_arrives_whole(self, launcher: Launcher, tmp_path: Path) -> None:
        text = "x" * 3_000_000
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "say", text=text), KIND)
        exits(launcher, self.r1)
        found, offset = "", 0
        while (part := launcher.logs(self.r1, offset)).text:
            found, offset = found + part.text, part.offset
        assert found == text + "\n"

    def test_exit_codes_and_signals_are_told_once(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "leave", code=3), KIND)
        launcher.start(self.r2, trial_job(tmp_path, self.r2, "die", signal="SIGSEGV"), KIND)
        found = exits(launcher, self.r1, self.r2)
        assert found[self.r1].code == 3
        assert found[self.r2].code == -11
        assert "SIGSEGV" in found[self.r2].detail
        assert launcher.poll() == []

    def test_sigkill_is_told_with_the_peak_of_memory(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "die", signal="SIGKILL"), KIND)
        ended = exits(launcher, self.r1)[self.r1]
        assert ended.code == -9
        assert "peak memory" in ended.detail
        assert "out of memory" in ended.detail

    def test_kill_ends_the_worker_with_its_children(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "wait", family=True), KIND)
        children = children_of(output(launcher, self.r1, "waiting"))
        assert len(children) == 2
        launcher.kill(self.r1)
        assert "request" in exits(launcher, self.r1)[self.r1].detail
        until(lambda: all(gone(pid) for pid in children), launcher)

    def test_a_worker_may_end_by_itself_within_the_grace(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "graceful"), KIND)
        output(launcher, self.r1, "waiting")
        launcher.kill(self.r1, grace=60)
        assert exits(launcher, self.r1)[self.r1].code == 7

    def test_a_worker_that_ignores_sigterm_is_killed_after_the_grace(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "stubborn"), KIND)
        output(launcher, self.r1, "waiting")
        launcher.kill(self.r1, grace=0.2)
        assert exits(launcher, self.r1)[self.r1].code == -9

    def test_children_do_not_outlive_a_worker_that_ends_by_itself(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "orphan", family=True), KIND)
        exits(launcher, self.r1)
        children = children_of(launcher.logs(self.r1, 0).text)
        assert len(children) == 2
        until(lambda: all(gone(pid) for pid in children), launcher)

    def test_killing_what_is_gone_or_unknown_does_nothing(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "leave", code=0), KIND)
        exits(launcher, self.r1)
        launcher.kill(self.r1, grace=1)
        launcher.kill("never heard of")
        assert launcher.logs("never heard of", 5).offset == 5

    def test_output_comes_in_whole_lines_from_an_offset(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "say", text="größe\nsecond"), KIND)
        exits(launcher, self.r1)
        first = launcher.logs(self.r1, 0)
        assert first.text == "größe\nsecond\n"
        assert launcher.logs(self.r1, first.offset).text == ""
        assert launcher.logs(self.r1, len("größe\n".encode())).text == "second\n"

    def test_an_interpreter_that_does_not_exist_is_named(self, launcher: Launcher, tmp_path: Path) -> None:
        kind = WorkerKind("python", str(tmp_path / "no" / "python"))
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "leave", code=0), kind)
        ended = exits(launcher, self.r1)[self.r1]
        assert ended.code != 0
        assert kind.executable in ended.detail
        assert kind.executable in launcher.logs(self.r1, 0).text

    def test_each_rank_has_its_own_place_folder_device_and_threads(self, launcher: Launcher, tmp_path: Path) -> None:
        job = trial_job(tmp_path, self.r1, "facts", devices=["2", "GPU-abc"], threads=6)
        launcher.start(self.r1, job, KIND, ranks=2)
        assert exits(launcher, self.r1)[self.r1].code == 0
        folders = [self.folder(tmp_path, self.r1, rank) for rank in range(2)]
        found = [facts_of(launcher, self.r1, rank) for rank in range(2)]
        assert found[0]["pid"] != found[1]["pid"]
        assert [facts["cwd"] for facts in found] == [str(folder / "work") for folder in folders]
        assert [facts["environment"]["CUDA_VISIBLE_DEVICES"] for facts in found] == ["2", "GPU-abc"]
        assert [facts["environment"]["OMP_NUM_THREADS"] for facts in found] == [self.threads] * 2
        assert [(facts["gang"]["rank"], facts["gang"]["local_rank"]) for facts in found] == [(0, 0), (1, 1)]
        for facts in found:
            assert (facts["gang"]["size"], facts["gang"]["local_size"], facts["gang"]["cross_size"]) == (2, 2, 1)
            assert facts["gang"]["rendezvous"] == str(folders[0] / "rendezvous")

    def test_each_rank_has_its_own_output(self, launcher: Launcher, tmp_path: Path) -> None:
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "place"), KIND, ranks=3)
        exits(launcher, self.r1)
        assert [launcher.logs(self.r1, 0, rank).text for rank in range(3)] == [
            f"I am {rank} of 3\n" for rank in range(3)
        ]

    def test_a_run_has_ended_once_all_its_ranks_have(self, launcher: Launcher, tmp_path: Path) -> None:
        handle = launcher.start(self.r1, trial_job(tmp_path, self.r1, ["succeed", "hold"]), KIND, ranks=2)
        output(launcher, self.r1, "waiting", rank=1)
        until(lambda: gone(self.pids(launcher, handle)[0]), launcher)
        assert launcher.poll() == []
        (self.folder(tmp_path, self.r1, 1) / "go").write_text("0")
        assert exits(launcher, self.r1)[self.r1].code == 0

    def test_a_killed_rank_takes_the_others_with_it(self, launcher: Launcher, tmp_path: Path) -> None:
        handle = launcher.start(self.r1, trial_job(tmp_path, self.r1, ["stubborn", "wait", "stubborn"]), KIND, ranks=3)
        for rank in range(3):
            output(launcher, self.r1, "waiting", rank)
        pids = self.pids(launcher, handle)
        os.kill(pids[1], signal.SIGKILL)
        ended = exits(launcher, self.r1)[self.r1]
        assert ended.code == -9
        assert ended.detail.startswith("rank 1 of 3: killed by signal 9")
        assert all(gone(pid) for pid in pids)

    @pytest.mark.parametrize("rank_grace", [600.0])
    def test_the_failure_that_is_told_is_the_one_that_came_by_itself(self, launcher: Launcher, tmp_path: Path) -> None:
        handle = launcher.start(self.r1, trial_job(tmp_path, self.r1, ["follow", "hold"]), KIND, ranks=2)
        output(launcher, self.r1, "waiting", rank=1)
        until(lambda: gone(self.pids(launcher, handle)[0]), launcher)
        assert launcher.poll() == []
        (self.folder(tmp_path, self.r1, 1) / "go").write_text("3")
        ended = exits(launcher, self.r1)[self.r1]
        assert ended.code == 3
        assert ended.detail.startswith("rank 1 of 2: exit code 3")

    def test_kill_reaches_every_rank(self, launcher: Launcher, tmp_path: Path) -> None:
        handle = launcher.start(self.r1, trial_job(tmp_path, self.r1, ["graceful", "graceful"]), KIND, ranks=2)
        for rank in range(2):
            output(launcher, self.r1, "waiting", rank)
        pids = self.pids(launcher, handle)
        launcher.kill(self.r1, grace=60)
        assert exits(launcher, self.r1)[self.r1].code == 7
        assert all(gone(pid) for pid in pids)

    def test_of_an_interpreter_that_does_not_exist_no_rank_starts(self, launcher: Launcher, tmp_path: Path) -> None:
        kind = WorkerKind("python", str(tmp_path / "no" / "python"))
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "leave", code=0), kind, ranks=2)
        assert kind.executable in exits(launcher, self.r1)[self.r1].detail

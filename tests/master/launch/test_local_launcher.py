"""Workers and standbys on this machine: real processes."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from launcher_contract import (
    BUNDLE,
    KIND,
    LauncherContract,
    exits,
    gone,
    output,
    ranks_of,
    trial_job,
    until,
)

from det_native.master.flow.thread import DecisionThread
from det_native.master.launch import local_run
from det_native.master.launch.base import WorkerKind
from det_native.master.launch.local import LocalLauncher
from det_native.master.launch.policy import Policy
from det_native.schema.manifests import Cell

pytestmark = pytest.mark.slow

HERE = str(Path(__file__).parent)
PROMPT = Policy(settle=0.0)
Make = Callable[..., LocalLauncher]


def _standby_processes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "det_harness.worker.standby" in child.cmdline()]


def _facts(directory: Path, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / run_id / "facts.json").read_text())
    return found


def _waiting(launcher: LocalLauncher) -> set[int]:
    return {standby.process.pid for standby in launcher._pool.standbys}


def _warm(launcher: LocalLauncher, count: int, kind: WorkerKind = KIND) -> None:
    launcher.warm(kind)
    until(lambda: (launcher.poll(), launcher.standbys().get(kind.framework, 0) == count)[1], launcher)


@pytest.mark.long
class TestLocalLauncher(LauncherContract):
    """The contract, without standbys; the quick lane has it for forked workers."""

    @pytest.fixture
    def launcher(self, make: Make, monkeypatch: pytest.MonkeyPatch, rank_grace: float) -> LocalLauncher:
        monkeypatch.setattr(local_run, "RANK_GRACE_SECONDS", rank_grace)
        return make(policy=Policy(settle=3600.0))


class TestStandbys:
    def test_a_ready_standby_takes_the_job_and_is_replaced(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=PROMPT)
        _warm(launcher, 2)
        before = _waiting(launcher)
        launcher.start("r1", trial_job(tmp_path, "r1", "facts"), KIND)
        exits(launcher, "r1")
        facts = _facts(tmp_path, "r1")
        assert facts["pid"] in before
        assert facts["frozen"] > 1_000  # no collection during a training searches what was imported
        _warm(launcher, 2)

    def test_ready_standbys_take_the_jobs_of_all_ranks(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=2, policy=PROMPT)
        _warm(launcher, 2)
        before = _waiting(launcher)
        handle = launcher.start("r1", trial_job(tmp_path, "r1", "facts"), KIND, ranks=2)
        assert set(ranks_of(handle)) == before
        assert handle["standby"] == "ready, ready"
        exits(launcher, "r1")
        _warm(launcher, 3)

    def test_no_standby_warms_up_while_a_worker_starts(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=Policy(settle=3600.0), forks=False)
        _warm(launcher, 2)
        launcher.start("r1", trial_job(tmp_path, "r1", "wait"), KIND)
        output(launcher, "r1", "waiting")
        assert launcher.standbys() == {"python": 1}
        assert len(_standby_processes()) == 2
        launcher.settled("r1")
        _warm(launcher, 2)

    def test_files_of_a_worker_are_open_to_whom_its_user_says(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=PROMPT, umask=0o027)
        launcher.start("r1", trial_job(tmp_path, "r1", "facts"), KIND)
        exits(launcher, "r1")
        assert stat.S_IMODE((tmp_path / "r1" / "facts.json").stat().st_mode) == 0o640

    def test_two_jobs_at_once_go_to_different_processes(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=2, policy=PROMPT)
        launcher.warm(KIND)
        for run_id in ("r1", "r2"):
            launcher.start(run_id, trial_job(tmp_path, run_id, "facts"), KIND)
        exits(launcher, "r1", "r2")
        facts = [_facts(tmp_path, run_id) for run_id in ("r1", "r2")]
        assert facts[0]["pid"] != facts[1]["pid"]

    def test_unused_standbys_retire(self, make: Make) -> None:
        now = 100.0
        launcher = make(slots=1, policy=Policy(settle=0.0, idle=60.0), clock=lambda: now)
        _warm(launcher, 2)
        now += 4 * 60.0
        until(lambda: (launcher.poll(), not _standby_processes())[1], launcher)
        assert launcher.standbys() == {}

    def test_a_standby_whose_launcher_dies_ends_by_itself(self, tmp_path: Path) -> None:
        script = (
            "import sys; from pathlib import Path; from det_native.master.launch.local import LocalLauncher;"
            "from det_native.master.launch.base import WorkerKind;"
            "launcher = LocalLauncher(Path(sys.argv[1]), entry='launch_entries:run');"
            "launcher.warm(WorkerKind('python'))\n"
            "while launcher.standbys() != {'python': 2}: launcher.wait(1); launcher.poll()\n"
            "print(*[standby.process.pid for standby in launcher._pool.standbys], flush=True)\n"
            "sys.stdin.read()"
        )
        environment = {**os.environ, "PYTHONPATH": HERE}
        with subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "standby")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as parent:
            assert parent.stdout is not None
            standbys = [int(number) for number in parent.stdout.readline().split()]
            assert not any(gone(pid) for pid in standbys)
            parent.kill()
        until(lambda: all(gone(pid) for pid in standbys))

    def test_secrets_and_settings_of_the_master_do_not_reach_a_worker(self, make: Make, tmp_path: Path) -> None:
        secret = {"DET_TOKEN": "the-masters-token", "MPLBACKEND": "module://matplotlib_inline", "JPY_API_TOKEN": "x"}
        launcher = make(variables={**secret, "HTTPS_PROXY": "kept"})
        launcher.start("r1", trial_job(tmp_path, "r1", "facts", variables={"GREETING": "hello"}), KIND)
        exits(launcher, "r1")
        environment = _facts(tmp_path, "r1")["environment"]
        assert not set(secret) & set(environment)
        assert "the-masters-token" not in environment.values()
        assert environment["GREETING"] == "hello"
        assert environment["HTTPS_PROXY"] == "kept"

    def test_each_worker_sees_its_own_devices_and_threads(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=2, device="cuda", variables={"CUDA_VISIBLE_DEVICES": "0,1,2,3"})
        for run_id, devices in (("r1", ["2"]), ("r2", ["GPU-abc", "3"]), ("r3", [])):
            launcher.start(run_id, trial_job(tmp_path, run_id, "facts", devices=devices, threads=3), KIND)
        exits(launcher, "r1", "r2", "r3")
        found = [_facts(tmp_path, run_id)["environment"] for run_id in ("r1", "r2", "r3")]
        assert [environment["CUDA_VISIBLE_DEVICES"] for environment in found] == ["2", "GPU-abc,3", ""]
        assert found[0]["OMP_NUM_THREADS"] == "3"

    def test_variables_that_matter_at_import_are_there_from_the_start(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=Policy(settle=3600.0))
        _warm(launcher, 2)
        job = trial_job(tmp_path, "r1", "wait", variables={"PYTHONHASHSEED": "5", "OMP_NUM_THREADS": "7"}, threads=2)
        handle = launcher.start("r1", job, KIND)
        assert "OMP_NUM_THREADS=7: this process computes with 7 thread(s)" in output(launcher, "r1", "waiting")
        started_with = psutil.Process(handle["pid"]).environ()
        assert started_with["PYTHONHASHSEED"] == "5"
        assert started_with["OMP_NUM_THREADS"] == "7"
        launcher.kill("r1")
        exits(launcher, "r1")

    def test_a_standby_older_than_an_installation_starts_over(self, make: Make, tmp_path: Path) -> None:
        packages = tmp_path / "elsewhere" / "site-packages"
        packages.mkdir(parents=True)
        (packages / "upgraded_package.py").write_text("VERSION = 'one'")
        launcher = make(slots=1, policy=PROMPT, variables={"PYTHONPATH": f"{HERE}{os.pathsep}{packages}"})
        _warm(launcher, 2)
        waiting = _waiting(launcher)
        (packages / "upgraded_package.py").write_text("VERSION = 'three'")
        os.utime(packages, (1, 1))
        handle = launcher.start("r1", trial_job(tmp_path, "r1", "version"), KIND)
        assert handle["pid"] in waiting
        exits(launcher, "r1")
        assert launcher.logs("r1", 0).text == "three\n"
        _warm(launcher, 2)
        waiting = {standby.process.pid: standby for standby in launcher._pool.standbys}
        handle = launcher.start("r2", trial_job(tmp_path, "r2", "version"), KIND)
        exits(launcher, "r2")
        assert launcher.logs("r2", 0).text == "three\n"
        assert not waiting[handle["pid"]].outdated  # those that are as old as the first one were replaced

    def test_what_the_last_program_imported_is_imported_beforehand(self, make: Make, tmp_path: Path) -> None:
        cell = Cell(number=1, cell_id=None, source="import scipy.special, antigravity\nfrom tqdm import auto")
        bundle = BUNDLE.model_copy(update={"program": BUNDLE.program.model_copy(update={"cells": (cell,)})})
        launcher = make(slots=1, policy=PROMPT)
        launcher.start("r1", trial_job(tmp_path, "r1", "leave", code=0, bundle=bundle), KIND)
        exits(launcher, "r1")
        until(lambda: (launcher.poll(), launcher.standbys() == {"python": 2})[1], launcher)
        names = ["scipy.special", "tqdm", "antigravity"]
        launcher.start("r2", trial_job(tmp_path, "r2", "modules", names=names), KIND)
        exits(launcher, "r2")
        assert launcher.logs("r2", 0).text == "scipy.special tqdm\n"

    def test_a_worker_ends_as_the_interpreter_does(self, make: Make, tmp_path: Path) -> None:
        launcher = make(policy=Policy(settle=3600.0))
        launcher.start("r1", trial_job(tmp_path, "r1", "last words"), KIND)
        launcher.start("r2", trial_job(tmp_path, "r2", "fail"), KIND)
        found = exits(launcher, "r1", "r2")
        assert (found["r1"].code, found["r2"].code) == (1, 1)
        said = launcher.logs("r1", 0).text
        assert said.index("said at the exit") < said.index("from a thread") < said.index("from atexit")
        assert launcher.logs("r2", 0).text.endswith("ValueError: what the program raised\n")

    def test_a_worker_holds_no_descriptor_of_the_master(self, make: Make, tmp_path: Path) -> None:
        held = os.open(tmp_path, os.O_RDONLY)
        try:
            launcher = make(slots=1)
            launcher.start("r1", trial_job(tmp_path, "r1", "facts"), KIND)
            exits(launcher, "r1")
        finally:
            os.close(held)
        # Standard streams, and the folder that counts them.
        assert _facts(tmp_path, "r1")["descriptors"] == 4

    def test_torch_and_its_first_optimizer_are_imported_beforehand(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=Policy(settle=3600.0))
        kind = WorkerKind("torch")
        launcher.start("r1", trial_job(tmp_path, "r1", "facts"), kind)
        exits(launcher, "r1")
        assert "torch" in _facts(tmp_path, "r1")["modules"]

    def test_an_environment_without_det_native_is_named(self, make: Make, tmp_path: Path) -> None:
        venv.create(tmp_path / "bare", symlinks=True, with_pip=False)
        executable = str(tmp_path / "bare" / "bin" / "python")
        launcher = make(policy=PROMPT)
        launcher.start("r1", trial_job(tmp_path, "r1", "leave", code=0), WorkerKind("python", executable))
        ended = exits(launcher, "r1")["r1"]
        assert ended.code == 1
        assert f"{executable}3.{sys.version_info.minor} has no det_native" in ended.detail
        assert "det_harness" in launcher.logs("r1", 0).text


@pytest.mark.long
class TestWait:
    def test_it_returns_as_soon_as_a_worker_ends(self, make: Make, tmp_path: Path) -> None:
        launcher = make(policy=Policy(settle=3600.0))
        handle = launcher.start("r1", trial_job(tmp_path, "r1", "wait"), KIND)
        output(launcher, "r1", "waiting")
        timer = threading.Timer(0.2, os.kill, (handle["pid"], signal.SIGKILL))
        timer.start()
        begin = time.monotonic()
        assert launcher.wait(60)
        assert time.monotonic() - begin < 30
        timer.join()
        assert [ended.run_id for ended in launcher.poll()] == ["r1"]

    def test_it_returns_when_a_standby_is_ready_and_when_a_start_is_over(self, make: Make, tmp_path: Path) -> None:
        launcher = make(slots=1, policy=Policy(settle=1.0), forks=False)
        launcher.warm(KIND)
        launcher.poll()
        for count in (1, 2):
            assert launcher.wait(60)
            launcher.poll()
            assert launcher.standbys() == {"python": count}
        begin = time.monotonic()
        launcher.start("r1", trial_job(tmp_path, "r1", "wait"), KIND)
        launcher.poll()
        while launcher.standbys() != {"python": 2}:
            assert launcher.wait(60)
            launcher.poll()
        assert 1.0 <= time.monotonic() - begin < 30

    def test_it_returns_when_standbys_have_been_idle_too_long(self, make: Make) -> None:
        launcher = make(slots=1, policy=Policy(settle=0.0, idle=0.5))
        _warm(launcher, 2)
        begin = time.monotonic()
        while launcher.standbys():
            assert launcher.wait(60)
            launcher.poll()
        assert time.monotonic() - begin < 30
        assert not _standby_processes()

    def test_after_a_run_the_standbys_are_complete_again_without_anything_else_happening(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("det_native.master.flow.thread.IDLE_SECONDS", 600.0)  # by then it would look by itself
        launcher = make(slots=1, policy=Policy(settle=0.2))
        running: set[str] = set()
        complete = threading.Event()

        def tick() -> None:
            running.difference_update(ended.run_id for ended in launcher.poll())
            if not running and launcher.standbys() == {"python": 2}:
                complete.set()

        def start(run_id: str) -> None:
            complete.clear()
            running.add(run_id)
            launcher.start(run_id, trial_job(tmp_path, run_id, "facts"), KIND)

        thread = DecisionThread(tick, busy=lambda: bool(running), waiter=launcher)
        thread.start()
        try:
            for run_id in ("check", "trial"):  # one right after the other, as a submit has it
                thread.call(lambda run_id=run_id: start(run_id)).result(60)  # type: ignore[misc]
            assert complete.wait(60)
        finally:
            thread.close()

    def test_wake_ends_it_from_another_thread(self, make: Make) -> None:
        launcher = make(policy=PROMPT)
        timer = threading.Timer(0.1, launcher.wake)
        timer.start()
        assert launcher.wait(60)
        timer.join()
        assert not launcher.wait(0)

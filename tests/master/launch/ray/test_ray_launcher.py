"""The launcher over a real Ray cluster: workers are processes of agents on its nodes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from launcher_contract import KIND, LauncherContract, exits, facts_of, gone, output, trial_job, until
from ray_cluster import RayCluster

from det_native.master.launch.base import Cluster, Launcher, WorkerKind
from det_native.master.launch.ray import launcher as launcher_module
from det_native.master.launch.ray.launcher import RayLauncher
from det_native.schema.cluster import SlotsWanted
from det_native.schema.home import Home
from det_native.schema.ranks import rank_folder

pytestmark = pytest.mark.slow

URL = "unix:/nowhere/master.sock"
Make = Callable[..., RayLauncher]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Give a home for all tests of this module, and so the same agents."""
    path = tmp_path_factory.mktemp("ray-home")
    (path / "runs").mkdir()
    return Home(path)


@pytest.fixture
def tmp_path(home: Home) -> Iterator[Path]:
    """Give the folder of the runs, empty."""
    yield home.path / "runs"
    for folder in (home.path / "runs").iterdir():
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared(ray_cluster: RayCluster, home: Home) -> Iterator[RayLauncher]:
    """Give the launcher, once all machines of the cluster have slots."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ray_cluster.environment.items():
            if name.startswith("RAY_"):
                patch.setenv(name, value)
        patch.setattr(launcher_module, "RANK_GRACE_SECONDS", 0.5)
        launcher = RayLauncher(home, URL, ray_cluster.address)
        try:
            until(lambda: (launcher.poll(), len(launcher.slots()) == 6)[1], launcher)
            yield launcher
        finally:
            launcher.close(kill_workers=True)


@pytest.fixture
def launcher(shared: RayLauncher) -> RayLauncher:
    """Give the launcher."""
    return shared


def places(launcher: RayLauncher, run_id: str) -> list[dict[str, Any]]:
    """Drive the launcher until all processes of a run have begun; return where they are."""

    def look() -> list[dict[str, Any]]:
        launcher.poll()
        found: list[dict[str, Any]] = launcher._runs[run_id].handle.get("places", [])
        return found

    return list(until(look, launcher))


def one_slot_of_each(launcher: RayLauncher) -> list[str]:
    """Return a slot of each machine."""
    return [f"{node.name}/0" for node in launcher.nodes()]


def test_a_run_is_on_the_machines_of_its_slots(launcher: RayLauncher, tmp_path: Path) -> None:
    assert isinstance(launcher, Cluster)
    assert sorted((node.slots, node.free) for node in launcher.nodes()) == [(2, 2), (4, 4)]
    assert launcher.trouble() == ""
    slots = one_slot_of_each(launcher)
    launcher.start("over-two", trial_job(tmp_path, "over-two", "place"), KIND, ranks=2, slots=slots)
    assert exits(launcher, "over-two")["over-two"].code == 0
    assert [launcher.logs("over-two", 0, rank).text for rank in range(2)] == ["I am 0 of 2\n", "I am 1 of 2\n"]
    until(lambda: (launcher.poll(), len(launcher.slots()) == 6)[1], launcher)


@pytest.fixture
def own(ray_cluster: RayCluster, shared: RayLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Make launchers of a home of their own, so that a bridge may come and go; they are closed with their workers."""
    folder = tmp_path_factory.mktemp("own-home")
    made: list[RayLauncher] = []

    def make(slots: str | None = None) -> RayLauncher:
        made.append(RayLauncher(Home(folder), URL, ray_cluster.address, slots=slots))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in ray_cluster.environment.items():
            if name.startswith("RAY_"):
                patch.setenv(name, value)
        yield make
        for launcher in made:
            launcher.close(kill_workers=True)


@pytest.mark.long
def test_a_slot_computes_with_the_cpus_that_ray_gives_it(own: Make) -> None:
    launcher = own(slots="1")  # of a machine with four and one with two, whatever the one below them has
    tmp_path = launcher._home.path / "runs"
    until(lambda: (launcher.poll(), len(launcher.slots()) == 2)[1], launcher)
    job = trial_job(tmp_path, "r1", "facts", threads=0)
    launcher.start("r1", job, KIND, ranks=2, slots=one_slot_of_each(launcher))
    assert exits(launcher, "r1")["r1"].code == 0
    found = [facts_of(launcher, "r1", rank)["environment"]["OMP_NUM_THREADS"] for rank in range(2)]
    assert sorted(found) == ["2", "4"]


@pytest.mark.long
def test_runs_go_on_while_the_bridge_is_killed(own: Make, tmp_path_factory: pytest.TempPathFactory) -> None:
    launcher = own()
    tmp_path = launcher._home.path / "runs"
    until(lambda: (launcher.poll(), len(launcher.slots()) == 6)[1], launcher)
    slots = one_slot_of_each(launcher)
    launcher.start("r1", trial_job(tmp_path, "r1", ["wait", "graceful"]), KIND, ranks=2, slots=slots)
    pids = [place["pid"] for place in places(launcher, "r1")]
    output(launcher, "r1", "waiting", 1)
    bridge = launcher._connection.bridge
    assert bridge is not None
    os.kill(bridge.pid, signal.SIGKILL)
    until(lambda: (launcher.poll(), launcher.trouble())[1], launcher)
    until(lambda: (launcher.poll(), not launcher.trouble())[1], launcher)
    assert not any(gone(pid) for pid in pids)
    launcher.kill("r1", grace=60)
    exits(launcher, "r1")
    assert all(gone(pid) for pid in pids)


@pytest.mark.long
def test_another_master_takes_up_the_runs_and_a_machine_that_dies_ends_them(own: Make, ray_cluster: RayCluster) -> None:
    third = ray_cluster.add_node(1)
    first = own()
    until(lambda: (first.poll(), len(first.slots()) == 7)[1], first)
    names = {node.id: node.name for node in first.nodes()}
    slots = [f"{names[ray_cluster.head.id]}/0", f"{names[third.id]}/0"]
    runs = first._home.path / "runs"
    handle = first.start("r1", trial_job(runs, "r1", ["stubborn", "wait"]), KIND, ranks=2, slots=slots)
    pids = [place["pid"] for place in places(first, "r1")]
    output(first, "r1", "waiting", 1)
    assert first._connection.bridge is not None
    os.kill(first._connection.bridge.pid, signal.SIGKILL)  # as if the master and all that is below it were
    first.close(kill_workers=False)
    second = own()
    assert second.adopt("r1", handle)
    until(lambda: (second.poll(), len(second.slots()) == 7)[1], second)
    assert {slot.id for slot in second.slots()} >= set(slots)
    assert not any(gone(pid) for pid in pids)
    ray_cluster.kill_node(third)
    ended = exits(second, "r1")["r1"]
    assert ended.code is None
    assert ended.detail == f"rank 1 of 2: the machine {names[third.id]} is gone"
    until(lambda: all(gone(pid) for pid in pids))
    until(lambda: (second.poll(), len(second.slots()) == 6)[1], second)


@pytest.mark.long
def test_runs_see_the_gpus_of_their_slots_and_no_others(own: Make, ray_cluster: RayCluster) -> None:
    """Ray takes the number of GPUs that it is told, and says which of them are whose."""
    node = ray_cluster.add_node(1, gpus=3)
    launcher = own()
    runs = launcher._home.path / "runs"
    until(lambda: (launcher.poll(), len(launcher.slots()) == 9)[1], launcher)
    slots = [slot.id for slot in launcher.slots() if slot.device == "cuda"]
    assert len(slots) == 3
    launcher.start("alone", trial_job(runs, "alone", "facts"), KIND, slots=slots[:1])
    launcher.start("gang", trial_job(runs, "gang", ["facts", "facts"]), KIND, ranks=2, slots=slots[1:])
    exits(launcher, "alone", "gang")
    seen = [devices(launcher, "alone"), devices(launcher, "gang", 0), devices(launcher, "gang", 1)]
    assert sorted(seen) == ["0", "1", "2"]
    # One process that has several slots sees all of them.
    until(lambda: (launcher.poll(), len(launcher.slots()) == 9)[1], launcher)
    launcher.start("both", trial_job(runs, "both", "facts"), KIND, slots=slots[:2])
    exits(launcher, "both")
    assert sorted(devices(launcher, "both").split(",")) in (["0", "1"], ["0", "2"], ["1", "2"])
    # Where there are no GPUs, none are seen.
    free = next(slot.id for slot in launcher.slots() if slot.device == "cpu")
    launcher.start("none", trial_job(runs, "none", "facts"), KIND, slots=[free])
    exits(launcher, "none")
    assert devices(launcher, "none") == ""
    ray_cluster.kill_node(node)


@pytest.mark.long
def test_the_cluster_behind_a_client_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    """As a laptop has it: what comes and goes over that one connection is the same."""
    ray = RayCluster(2, client=True)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in ray.environment.items():
                if name.startswith("RAY_"):
                    patch.setenv(name, value)
            home = tmp_path_factory.mktemp("client-home")
            launcher = RayLauncher(Home(home), URL, ray.client_address)
            try:
                until(lambda: (launcher.poll(), len(launcher.slots()) == 2)[1], launcher)
                slots = [slot.id for slot in launcher.slots()]
                launcher.start("r1", trial_job(home / "runs", "r1", "place"), KIND, ranks=2, slots=slots)
                assert exits(launcher, "r1")["r1"].code == 0
                assert [launcher.logs("r1", 0, rank).text for rank in range(2)] == ["I am 0 of 2\n", "I am 1 of 2\n"]
            finally:
                launcher.close(kill_workers=True)
    finally:
        ray.stop()


def devices(launcher: RayLauncher, run_id: str, rank: int = 0) -> str:
    """Return ``CUDA_VISIBLE_DEVICES`` of a process that has told its facts."""
    return str(json.loads(launcher.logs(run_id, 0, rank).text)["environment"].get("CUDA_VISIBLE_DEVICES"))


@pytest.mark.long
def test_a_run_that_is_to_begin_on_a_machine_that_has_gone_is_given_back(own: Make, ray_cluster: RayCluster) -> None:
    """Ray does not know yet that it is gone, and would wait for its slots for ever."""
    third = ray_cluster.add_node(1)
    launcher = own()
    until(lambda: (launcher.poll(), len(launcher.slots()) == 7)[1], launcher)
    [name] = [node.name for node in launcher.nodes() if node.id == third.id]
    third.hang()
    launcher.start("r1", trial_job(launcher._home.path / "runs", "r1", "leave"), KIND, slots=[f"{name}/0"])
    ended = exits(launcher, "r1")["r1"]
    assert (ended.detail, ended.interrupted) == (f"the machine {name} is gone",) * 2
    assert not ended.begun
    ray_cluster.kill_node(third)
    until(lambda: (launcher.poll(), len(launcher.slots()) == 6)[1], launcher)


@pytest.mark.long
def test_a_run_that_the_master_had_not_handed_over_has_not_begun(launcher: RayLauncher, tmp_path: Path) -> None:
    """The master ended between storing it and telling the bridge."""
    assert launcher.adopt("r9", {"ray": "r9", "directory": str(tmp_path / "r9"), "ranks": 1, "slots": []})
    ended = exits(launcher, "r9")["r9"]
    assert (ended.code, ended.begun) == (None, False)


@pytest.mark.long
class TestRayLauncher(LauncherContract):
    """The contract."""

    threads = "1"

    @pytest.fixture(autouse=True)
    def _cluster(self, ray_cluster: RayCluster, shared: RayLauncher) -> None:
        self._root = ray_cluster.folder / "home/.cache/det_native/agents" / shared._identity.namespace
        self._head = ray_cluster.head.id[:16]

    def folder(self, directory: Path, run_id: str, rank: int = 0) -> Path:
        """Return the folder on the machine with most room."""
        return rank_folder(self._root / self._head / "runs" / run_id, rank)

    def pids(self, launcher: Launcher, handle: dict[str, Any]) -> list[int]:
        """Return the numbers of the processes, which are on this machine here."""
        assert isinstance(launcher, RayLauncher)
        return [place["pid"] for place in places(launcher, handle["ray"])]

    # `test_ray_gang.py` has the case whose grace is so long that a bridge of its own would be wanted for it.
    test_the_failure_that_is_told_is_the_one_that_came_by_itself = None  # type: ignore[assignment]
    # An agent takes its own interpreter in the place of one that is only on the master's machine.
    test_an_interpreter_that_does_not_exist_is_named = None  # type: ignore[assignment]
    test_of_an_interpreter_that_does_not_exist_no_rank_starts = None  # type: ignore[assignment]

    def test_an_interpreter_of_the_masters_machine_only_is_the_agents_own(
        self, launcher: RayLauncher, tmp_path: Path
    ) -> None:
        kind = WorkerKind("python", str(tmp_path / "no" / "python"))
        launcher.start(self.r1, trial_job(tmp_path, self.r1, "leave", code=0), kind)
        assert exits(launcher, self.r1)[self.r1].code == 0


@pytest.fixture
def asked_of_autoscaler(ray_cluster: RayCluster) -> Iterator[Callable[[], dict[str, Any]]]:
    """Say what the autoscaler has been asked for, by what the head of the cluster keeps for it."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("autoscaler_request.py")), ray_cluster.address],
        env=ray_cluster.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:

        def read() -> dict[str, Any]:
            assert reader.stdin is not None
            assert reader.stdout is not None
            print(file=reader.stdin, flush=True)
            found: dict[str, Any] = json.loads(reader.stdout.readline())
            return found

        yield read


@pytest.mark.long
def test_the_autoscaler_is_asked_for_whole_machines_of_a_kind(
    own: Make, asked_of_autoscaler: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [
        SlotsWanted(slots=4, single_node=True),
        SlotsWanted(slots=2, node="zone=b"),
        SlotsWanted(slots=1, accelerator="h100"),
    ]
    earlier = [{"CPU": 8.0}, {"CPU": 2.0}, {"CPU": 2.0}, {"GPU": 1.0, "accelerator_type:H100": 0.001}]
    now = [
        {"count": 1, "resources": {"CPU": 8.0}, "labels": {}},
        {"count": 2, "resources": {"CPU": 2.0}, "labels": {"zone": ["b"]}},
        {"count": 1, "resources": {"GPU": 1.0, "accelerator_type:H100": 0.001}, "labels": {}},
    ]
    launcher = own("cpu:1")  # two processors a slot on the machine beside the head
    launcher.want(wanted)
    until(lambda: (launcher.poll(), asked_of_autoscaler()["earlier"] == earlier)[1], launcher)
    launcher.close(kill_workers=True)
    assert asked_of_autoscaler()["earlier"] == []  # nobody waits any more
    monkeypatch.setenv("RAY_enable_autoscaler_v2", "1")  # as on Kubernetes
    other = own("cpu:1")
    other.want(wanted)
    until(lambda: (other.poll(), sorted(asked_of_autoscaler()["now"], key=str) == sorted(now, key=str))[1], other)
    other.want([])
    until(lambda: (other.poll(), asked_of_autoscaler()["now"] == [])[1], other)

"""An agent with real workers: what they write comes to the master's home, and their ends are told after that."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from agent_parts import BUNDLE, WORKER, ThreadBridge, check_job, text_of, trial_job, until
from det_harness.trial.spool import Spool
from master_parts import publish
from tiny_wheels import make_wheel

from det_native.errors import StorageError
from det_native.master.launch.ray.agent import rank_end
from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.asks.kinds import RankEnded, Read, Request, Share, Write
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.schema.manifests import CheckpointManifest, FileEntry
from det_native.schema.rest import StartedReport
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.datasets import DataStore
from det_native.storage.file_states import BASELINE_NAME, Baseline, state_of

pytestmark = pytest.mark.slow
long = pytest.mark.long

MakeAgent = Callable[..., NodeAgent]


def test_a_worker_runs_its_job_on_the_machine_and_what_it_leaves_comes_home(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        job = trial_job(home, "r1", "say", text="größe").model_dump_json()
        started = bridge.call(agent.start("r1", 0, job, WORKER))
        assert started["pid"]
        assert bridge.call(agent.start("r1", 0, job, WORKER)) == started, "a start that is asked for twice is one"
        [ended] = bridge.wait_for(("r1", 0))
        assert (ended.code, ended.begun) == (0, True)
        assert text_of(home / "runs/r1/output.log") == "größe\n"
        assert until(lambda: bridge.call(agent.runs()) == {})
        folder = Path(bridge.call(agent.facts()).folder)
        assert not list((folder / "runs").iterdir())


@pytest.mark.long
def test_packages_of_a_run_are_installed_on_its_machine_once(
    make_agent: MakeAgent, server: AskServer, home: Path, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "tiny_pack", "1.0")
    agent = make_agent(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    worker = WORKER.model_copy(update={"packages": ["tiny-pack==1.0"]})
    texts = []
    with ThreadBridge(server, [agent]) as bridge:
        folder = Path(bridge.call(agent.facts()).folder)
        for run in ("r1", "r2"):
            bridge.call(agent.start(run, 0, trial_job(home, run, "tiny pack").model_dump_json(), worker))
            [ended] = bridge.wait_for((run, 0))
            texts.append(text_of(home / f"runs/{run}/output.log"))
            assert ended.code == 0, texts
            seen = json.loads(texts[-1].splitlines()[-1])
            assert seen["version"] == "1.0"
            assert Path(seen["prefix"]).is_relative_to(folder), "other masters and other users have their own"
    assert "Successfully installed tiny-pack-1.0" in texts[0]
    assert "Makes an environment" not in texts[1]


@long
def test_a_check_leaves_its_result(make_agent: MakeAgent, server: AskServer, home: Path) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        bridge.call(agent.start("c1", 0, check_job(home, "c1").model_dump_json(), WORKER))
        [ended] = bridge.wait_for(("c1", 0))
        assert ended.code == 0
        assert json.loads(text_of(home / "runs/c1/result.json")) == {}


def start(bridge: ThreadBridge, agent: NodeAgent, home: Path, run_id: str, action: str, **fields: object) -> int:
    """Start a worker; return its number."""
    job = trial_job(home, run_id, action, **fields)
    rank = job.gang.rank if job.gang is not None else 0
    return int(str(bridge.call(agent.start(run_id, rank, job.model_dump_json(), WORKER))["pid"]))


def folder_of(bridge: ThreadBridge, agent: NodeAgent, run_id: str) -> Path:
    """Return the folder of a run on the machine of an agent."""
    return Path(bridge.call(agent.facts()).folder, "runs", run_id)


@long
def test_output_follows_while_it_is_written_and_a_kill_reaches_all_processes(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        pid = start(bridge, agent, home, "r1", "wait", family=True)
        until(lambda: "waiting" in text_of(home / "runs/r1/output.log"))
        output = text_of(home / "runs/r1/output.log")
        children = [int(line.split()[1]) for line in output.splitlines() if line.startswith("child")]
        assert bridge.call(agent.runs()) == {"r1": [0]}
        assert bridge.call(agent.stopped("r1")) == []
        os.kill(pid, signal.SIGSTOP)
        until(lambda: bridge.call(agent.stopped("r1")) == [pid])
        os.kill(pid, signal.SIGCONT)
        bridge.call(agent.kill("r1"))
        [ended] = bridge.wait_for(("r1", 0))
        assert "on request" in ended.detail
        assert not any(psutil.pid_exists(child) for child in [pid, *children])


@long
def test_a_bridge_may_lose_answers_and_go_and_nothing_is_lost(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent], "first", drop=lambda ask: True) as bridge:
        start(bridge, agent, home, "r1", "say", text="heard at last")
        bridge.wait_for_ask(lambda ask: isinstance(ask.what, Write))
    with ThreadBridge(server, [agent], "second", drop=lambda ask: isinstance(ask.what, RankEnded)) as bridge:
        bridge.wait_for(("r1", 0))
        assert bridge.call(agent.runs()) == {"r1": [0]}, "its end was not answered"
    with ThreadBridge(server, [agent], "third") as bridge:
        [ended] = bridge.wait_for(("r1", 0))
        assert ended.code == 0
        until(lambda: bridge.call(agent.runs()) == {})
    assert text_of(home / "runs/r1/output.log") == "heard at last\n"


def test_files_of_a_gang_reach_the_other_machine_and_do_not_come_back(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    agents = [make_agent("a"), make_agent("b")]
    with ThreadBridge(server, agents) as bridge:
        folders = [folder_of(bridge, agent, "r1") for agent in agents]
        bridge.call(agents[1].share("r1", "roles/early", b"before the start"))
        for rank, agent in enumerate(agents):
            start(bridge, agent, home, "r1", "hold", rank=rank, machines=2)
        (folders[0] / "rendezvous").write_text("127.0.0.1:1234")
        until(lambda: text_of(folders[1] / "rendezvous") == "127.0.0.1:1234")
        (folders[1] / "rank-1" / "system.json").write_text("[1]")
        until(lambda: text_of(folders[0] / "rank-1" / "system.json") == "[1]")
        replaced = folders[1] / "system-of-rank-1"  # a file that is written in place may be read half
        replaced.write_text("[1, 2]")
        replaced.rename(folders[1] / "rank-1" / "system.json")
        until(lambda: text_of(folders[0] / "rank-1" / "system.json") == "[1, 2]")
        with pytest.raises(StorageError, match="find each other"):
            bridge.call(agents[0].share("r1", "work/secret.py", b""))
        (folders[0] / "go").write_text("0")
        (folders[1] / "rank-1" / "go").write_text("3")
        ends = bridge.wait_for(("r1", 0), ("r1", 1))
        assert [end.code for end in ends] == [0, 3]
        shares = [ask.what.name for ask in bridge.seen if isinstance(ask.what, Share)]
        assert shares == ["rendezvous", "rank-1/system.json", "rank-1/system.json"]
        assert text_of(home / "runs/r1/rank-1/system.json") == "[1, 2]"


@long
def test_files_that_a_killed_worker_had_not_reported_come_home(
    make_agent: MakeAgent, server: AskServer, home: Path, tmp_path: Path
) -> None:
    agent = make_agent()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with ThreadBridge(server, [agent]) as bridge:
        pid = start(bridge, agent, home, "r1", "hold")
        folder = folder_of(bridge, agent, "r1")
        work = until(lambda: (folder / "work").is_dir() and folder / "work")
        (work / "before.txt").write_text("of the bundle")
        before = state_of(work / "before.txt")
        assert before is not None
        Baseline({"before.txt": before}, elsewhere={"out/": str(elsewhere)}).write(folder)
        (work / "new").mkdir()
        (work / "new" / "result.txt").write_text("new")
        (elsewhere / "far.txt").write_text("far")
        os.kill(pid, signal.SIGKILL)
        [ended] = bridge.wait_for(("r1", 0))
        assert ended.code == -9
    run = home / "runs" / "r1"
    assert text_of(run / "work/new/result.txt") == "new"
    assert text_of(run / "work/out/far.txt") == "far"
    assert not (run / "work/before.txt").exists()
    left = Baseline.read(run)
    assert left is not None
    assert (set(left.states), left.elsewhere) == ({"before.txt"}, {})
    assert (run / BASELINE_NAME).is_file()


@long
def test_what_a_job_needs_is_brought_once_and_kept_for_the_next(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    contents = [b"small", os.urandom(9 << 20)]
    store = BlobStore(str(home / "blobs"))
    entries = []
    for number, content in enumerate(contents):
        sha256 = hashlib.sha256(content).hexdigest()
        store.put(sha256, content)
        entries.append(FileEntry(path=f"file-{number}", sha256=sha256, size=len(content)))
    linked = b"a data set"
    link = FileEntry(path="data", sha256=hashlib.sha256(linked).hexdigest(), size=len(linked))
    place = home / "data" / "contents" / link.sha256[:2] / link.sha256
    place.parent.mkdir(parents=True)
    place.write_bytes(linked)
    bundle = BUNDLE.model_copy(update={"files": tuple(entries), "links": (link,)})
    agents = [make_agent("a"), make_agent("b")]
    with ThreadBridge(server, agents) as bridge:
        starts = [
            agents[0].start(run, 0, trial_job(home, run, "say", text="x", bundle=bundle).model_dump_json(), WORKER)
            for run in ("r1", "r2")
        ]
        assert len(bridge.call(_together(starts))) == 2
        bridge.wait_for(("r1", 0), ("r2", 0))
        reads = [(ask.what.path, ask.what.offset) for ask in bridge.seen if isinstance(ask.what, Read)]
        assert len(reads) == len(set(reads)), "each piece is read once"
        start(bridge, agents[1], home, "r3", "say", text="x", bundle=bundle)
        bridge.wait_for(("r3", 0))
        assert len([ask for ask in bridge.seen if isinstance(ask.what, Read)]) == len(reads), "the machine has them"
        cache = Path(bridge.call(agents[0].facts()).folder).parent / "cache"
        assert [BlobStore(str(cache / "blobs")).read(entry.sha256) for entry in entries] == contents
        assert (cache / "data" / "contents" / link.sha256[:2] / link.sha256).read_bytes() == linked


async def _together(coroutines: list[Any]) -> list[Any]:
    return list(await asyncio.gather(*coroutines))


@long
def test_a_job_whose_files_are_gone_or_damaged_does_not_start(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    sha256 = hashlib.sha256(b"content").hexdigest()
    bundle = BUNDLE.model_copy(update={"files": (FileEntry(path="a", sha256=sha256, size=7),)})
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        with pytest.raises(StorageError, match="no blob"):
            start(bridge, agent, home, "r1", "say", text="x", bundle=bundle)
        store = BlobStore(str(home / "blobs"))
        other = hashlib.sha256(b"another").hexdigest()
        store.put(other, b"another")
        (home / "blobs" / sha256[:2]).mkdir(exist_ok=True)
        (home / "blobs" / sha256[:2] / sha256).write_bytes((home / "blobs" / other[:2] / other).read_bytes())
        with pytest.raises(StorageError, match="has the hash"):
            start(bridge, agent, home, "r1", "say", text="x", bundle=bundle)
        assert bridge.call(agent.runs()) == {}


@long
def test_a_process_is_ended_while_its_files_are_brought(make_agent: MakeAgent, server: AskServer, home: Path) -> None:
    sha256 = hashlib.sha256(b"content").hexdigest()
    bundle = BUNDLE.model_copy(update={"files": (FileEntry(path="a", sha256=sha256, size=7),)})
    job = trial_job(home, "r1", "say", text="x", bundle=bundle).model_dump_json()
    agent = make_agent()
    with ThreadBridge(server, [agent], hold=lambda ask: isinstance(ask.what, Read)) as bridge:
        starting = bridge.begin(agent.start("r1", 0, job, WORKER))
        bridge.wait_for_ask(lambda ask: isinstance(ask.what, Read))
        bridge.call(agent.kill("r1"))
        with pytest.raises(StorageError, match="on request"):
            starting.result(60)
        assert bridge.call(agent.runs()) == {}
        orphaned = bridge.begin(agent.start("r1", 0, job, WORKER))
        until(lambda: bridge.call(agent.runs()) == {"r1": [0]})
    with ThreadBridge(server, [agent], "next", hold=lambda ask: isinstance(ask.what, Read)) as bridge:
        bridge.wait_for_ask(lambda ask: isinstance(ask.what, Read))
        assert bridge.call(agent.runs()) == {"r1": [0]}
        bridge.call(agent.kill("r1"))
        [ended] = bridge.wait_for(("r1", 0))
        assert (ended.begun, ended.code) == (False, None)
    assert orphaned.cancelled() or orphaned.exception() is not None


@long
def test_an_earlier_checkpoint_is_brought_where_the_one_to_continue_from_is_damaged(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    made = [publish(trial_job(home, "r0", "say"), batch)[1]["manifest"] for batch in (4, 8, 12)]
    manifests = [CheckpointManifest.model_validate(manifest) for manifest in made]
    (home / "checkpoints" / manifests[2].uuid / "weights").write_text("changed since")
    known = {manifest.uuid: manifest.sha256 for manifest in manifests}
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        start(bridge, agent, home, "r1", "hold", resume=manifests[2], manifests=known)
        folder = folder_of(bridge, agent, "r1").parents[1]
        storage = CheckpointStorage(str(folder / "checkpoints"))
        assert storage.list() == [manifests[1]], "the furthest that is whole"
        storage.verify(manifests[1])
        (folder / "runs" / "r1" / "go").write_text("0")
        bridge.wait_for(("r1", 0))
        until(lambda: storage.list() == [])


def test_a_folder_is_one_agents_and_what_nobody_has_used_for_long_goes(tmp_path: Path) -> None:
    folders = AgentFolders(tmp_path / "a")
    lock = folders.prepare("cluster")
    store = BlobStore(str(folders.blobs))
    hashes = [hashlib.sha256(content).hexdigest() for content in (b"old", b"new")]
    for sha256, content in zip(hashes, (b"old", b"new"), strict=True):
        store.put(sha256, content)
    os.utime(folders.blobs / hashes[0][:2] / hashes[0], (0, 0))
    folders.remove_unused()
    assert [sha256 in store for sha256 in hashes] == [False, True]
    (folders.run("r1")).mkdir()
    lock.release()
    with pytest.raises(StorageError, match="belongs to the agent of 'cluster'"):
        folders.prepare("another")
    folders.prepare("cluster").release()
    assert list(folders.runs.iterdir()) == []


def test_data_that_no_run_of_the_machine_links_to_go_once_they_are_old(tmp_path: Path) -> None:
    folders = AgentFolders(tmp_path / "a")
    other = AgentFolders(tmp_path / "b")
    locks = [folders.prepare("cluster"), other.prepare("cluster")]
    store = DataStore(folders.data)
    hashes = [hashlib.sha256(bytes([number])).hexdigest() for number in range(4)]
    unused, linked, renewed, new = (store.path_of(sha256) for sha256 in hashes)
    for path in (unused, linked, renewed, new):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"data")
        os.utime(path, (0, 0) if path != new else None)
    (folders.data / "partial").mkdir()
    (folders.data / "partial" / hashes[0]).write_bytes(b"da")
    os.utime(folders.data / "partial" / hashes[0], (0, 0))
    work = other.run("r1") / "work" / "images"
    work.mkdir(parents=True)
    (work / "1.png").symlink_to(linked)
    assert store.refresh(hashes[2])
    folders.remove_unused()
    assert [path.exists() for path in (unused, linked, renewed, new)] == [False, True, True, True]
    assert not any((folders.data / "partial").iterdir())
    for lock in locks:
        lock.release()


@long
def test_a_run_that_is_to_end_does_not_wait_for_ever_until_its_reports_are_taken(
    make_agent: MakeAgent, server: AskServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_end, "_PATIENCE", 0.1)
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:  # the master is away, as it is to reports while its disk is full
        start(bridge, agent, home, "r1", "hold")
        folder = folder_of(bridge, agent, "r1")
        Spool(folder / "spool").append(1, StartedReport(seq=1, batch=0).model_dump_json())
        (folder / "go").write_text("0")
        bridge.wait_for_ask(lambda ask: isinstance(ask.what, Request))
        assert not bridge.ends
        bridge.call(agent.kill("r1"))
        bridge.wait_for(("r1", 0))
    assert "Not all of its last reports could be brought to the master" in text_of(home / "runs/r1/output.log")


@pytest.mark.parametrize(("started_with", "kept"), [({}, ""), ({"OMP_NUM_THREADS": "3"}, "3")])
def test_the_users_number_of_threads_is_kept_and_that_of_ray_is_not(started_with: dict[str, str], kept: str) -> None:
    code = """
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as Ray does in its workers
from det_native.master.launch.ray.agent.agent import _own_environment

print(_own_environment().get("OMP_NUM_THREADS", ""))
"""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | started_with
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == kept

"""Checkpoints whose upload is cut: to the master, which goes on where it was, and to S3, where nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from agent_parts import WORKER, ThreadBridge, trial_job, until
from fault_proxy import FaultProxy, Network
from s3_server import S3, running_s3

from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.agent.uploads import PIECE, Uploads
from det_native.master.launch.ray.asks.kinds import Ask, Write
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.schema.job import TrialJob
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

UUID = "00000000-0000-4000-8000-000000000001"
SIZE = 64 << 20
# Bytes a second: the upload lasts until its worker is killed.
RATE = 4 << 20
WRITER = f"""
from pathlib import Path
from det_harness.trial.publications import Publications
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

def run(job):
    storage = CheckpointStorage(job.checkpoints, job.checkpoint_options)
    folder = storage.workspace()
    (folder / "small").write_text("small")
    with (folder / "weights").open("wb") as stream:
        stream.truncate({SIZE})
    (Path(job.directory) / "spool").mkdir()
    Publications(Path(job.directory), job.run_id, job.checkpoints, job.checkpoint_options).begin({UUID!r})
    storage.publish(folder, CheckpointManifest(
        uuid={UUID!r}, framework="torch", framework_version="2", det_version="0", batch=1, experiment_id=1, trial_id=2,
        run_id=job.run_id, bundle_id="0" * 64, hparams={{}}, created="2026-01-01T00:00:00Z",
    ))
    return 0
"""
AGENT = """
import asyncio, signal, sys
from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.messages import Worker

agent = NodeAgent(sys.argv[1], "cluster", "cpu", 2, entry="s3_writer:run")
print(asyncio.run(agent.start("r1", 0, sys.stdin.read(), Worker(framework="python")))["pid"], flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def uploads(s3: S3, bucket: str) -> list[str]:
    """Return the keys of uploads that are not complete."""
    found = s3.files().call_s3("list_multipart_uploads", Bucket=bucket)
    return [each["Key"] for each in found.get("Uploads") or []]


@pytest.fixture
def proxy(s3: S3) -> Iterator[FaultProxy]:
    """Run what is between workers and S3."""
    with FaultProxy(int(s3.endpoint.rpartition(":")[2])) as running, running.slow(RATE):
        yield running


@pytest.fixture
def writer(tmp_path: Path) -> str:
    """Give what belongs on the import path of workers."""
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "s3_writer.py").write_text(WRITER)
    return str(tmp_path / "entry")


def job_into(s3: S3, bucket: str, home: Path, proxy: FaultProxy) -> TrialJob:
    """Return a job whose checkpoints go to a bucket."""
    options = s3.options | {"endpoint_url": f"http://127.0.0.1:{proxy.port}"}
    there = {"checkpoints": f"s3://{bucket}/all", "checkpoint_options": options}
    return trial_job(home, "r1", "publish").model_copy(update=there)


def kill_in_upload(s3: S3, bucket: str, proxy: FaultProxy, pid: int) -> None:
    """SIGKILL a process once the upload of its worker has begun; what is on its way then is lost."""
    until(lambda: uploads(s3, bucket))
    with proxy.being(Network.HELD):
        os.kill(pid, signal.SIGKILL)
    assert CheckpointStorage(f"s3://{bucket}/all", s3.options).list() == []


@pytest.mark.long
def test_a_worker_that_is_killed_in_an_upload_to_s3_leaves_nothing(
    make_agent: Callable[..., NodeAgent], server: AskServer, home: Path, s3: S3, proxy: FaultProxy, writer: str
) -> None:
    bucket = s3.bucket()
    agent = make_agent(entry="s3_writer:run", path=writer)
    job = job_into(s3, bucket, home, proxy)
    with ThreadBridge(server, [agent]) as bridge:
        pid = int(str(bridge.call(agent.start("r1", 0, job.model_dump_json(), WORKER))["pid"]))
        temporary = Path(psutil.Process(pid).environ()["TMPDIR"])
        assert temporary.name.startswith("det-")
        kill_in_upload(s3, bucket, proxy, pid)
        [ended] = bridge.wait_for(("r1", 0))
        assert ended.code == -signal.SIGKILL
        until(lambda: not uploads(s3, bucket))
        root = Path(bridge.call(agent.facts()).folder)
        until(lambda: not list((root / "runs").glob("r1")))
    assert s3.sizes(bucket) == {}
    assert not temporary.exists(), "the files of the checkpoint lay there"
    assert not list((root / "notes").iterdir())
    assert not [ask for ask in bridge.seen if isinstance(ask.what, Write) and ask.what.root == "checkpoints"]


@pytest.mark.soak
def test_the_next_agent_removes_what_an_agent_that_was_killed_has_left_there(
    make_agent: Callable[..., NodeAgent], home: Path, tmp_path: Path, s3: S3, proxy: FaultProxy, writer: str
) -> None:
    bucket = s3.bucket()
    text = job_into(s3, bucket, home, proxy).model_dump_json()
    command = [sys.executable, "-c", AGENT, str(tmp_path / "machine" / "agent")]
    environment = {**os.environ, "PYTHONPATH": writer}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(text)
        agent.stdin.close()
        worker = psutil.Process(int(agent.stdout.readline()))
        kill_in_upload(s3, bucket, proxy, agent.pid)
    psutil.wait_procs([worker], timeout=60)
    assert uploads(s3, bucket)
    make_agent()
    until(lambda: not uploads(s3, bucket) and not s3.sizes(bucket))


@pytest.mark.long
def test_pieces_go_on_where_they_were_when_a_bridge_was_gone(server: AskServer, home: Path, tmp_path: Path) -> None:
    folders = AgentFolders(tmp_path / "machine" / "agent")
    with ExitStack() as held:
        held.callback(folders.prepare("cluster").release)
        storage = CheckpointStorage(str(folders.checkpoints))
        folder = storage.workspace()
        (folder / "weights").write_bytes(os.urandom(5 * PIECE + 1))
        _, manifest = storage.publish(folder, described())
        first, second = asyncio.run(brought_by_two_bridges(server, folders, manifest))
    assert [offset // PIECE for offset in first] == [0, 1, 2]
    assert [offset // PIECE for offset in second] == [2, 3, 4, 5], "what had arrived is not sent again"
    there = CheckpointStorage(str(home / "checkpoints"))
    there.verify(manifest)
    assert not list((home / "checkpoints" / ".incoming").iterdir())


async def brought_by_two_bridges(
    server: AskServer, folders: AgentFolders, manifest: CheckpointManifest
) -> tuple[list[int], list[int]]:
    """Bring a checkpoint by a bridge that is gone after two pieces, and by another; return the offsets of pieces."""
    asks = AskQueue()
    bringing = asyncio.create_task(Uploads(asks, folders).checkpoint(manifest))
    offsets: tuple[list[int], list[int]] = ([], [])
    while len(offsets[0]) < 3:
        for ask in await asks.take("first", 64, 1.0):
            if note(ask, offsets[0]) < 3:
                asks.answer([(ask.number, await server.perform(ask.what))])
    assert not (server._files.root("checkpoints") / manifest.uuid).exists()
    while not bringing.done():
        for ask in await asks.take("second", 64, 0.1):
            note(ask, offsets[1])
            asks.answer([(ask.number, await server.perform(ask.what))])
            await asyncio.sleep(0)
    assert await bringing == ""
    return offsets


def note(ask: Ask, offsets: list[int]) -> int:
    """Note the offset of a piece of the large file; return how many there are."""
    if isinstance(ask.what, Write) and ask.what.path.endswith("/weights"):
        offsets.append(ask.what.offset)
    return len(offsets)


def described() -> CheckpointManifest:
    """Return what is said of the checkpoint before its files are known."""
    return CheckpointManifest(
        uuid=UUID,
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=1,
        experiment_id=1,
        trial_id=2,
        run_id="r1",
        bundle_id="0" * 64,
        hparams={},
        created="2026-01-01T00:00:00Z",
    )

"""A process that submits is killed, or its cell interrupted, at moments that are drawn: nothing half of it is there.

``DET_CUTS`` says how often each of the two is done (2 by default), ``DET_CUTS_SEED`` repeats a run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, running_master

from det_native import PROTOCOL, __version__
from det_native.schema.home import Home, RuntimeFile
from det_native.schema.manifests import BundleManifest
from det_native.schema.processes import start_mark
from det_native.storage.blobs import BlobStore

pytestmark = [pytest.mark.slow, pytest.mark.long]

CUTS = int(os.environ.get("DET_CUTS", "2"))

# Each line of its input is an attempt in a process of its own, forked off this one, which has imported everything.
SUBMITTER = """
import itertools, json, os, signal, sys, threading, time, traceback
from pathlib import Path
from uuid import uuid4
from det_native import PROTOCOL
from det_native.capture.bundle import assemble
from det_native.capture.hash_cache import HashCache
from det_native.capture.model import Capture
from det_native.client.session import Session
from det_native.client.upload import upload_bundle
from det_native.schema import routes
from det_native.schema.manifests import Cell, Program
from det_native.schema.rest import ExperimentCreate
import det_native.storage.packing  # an interrupt while Python imports a module for the first time may leave half of it

url, token = sys.argv[1:]


def submit(session, bundle, config, cut=0):
    created = upload_bundle(session, bundle)
    if cut:
        os.kill(os.getpid(), cut)
    body = ExperimentCreate(protocol=PROTOCOL, config=config, bundle_id=created.id)
    return session.call(routes.CREATE_EXPERIMENT, body, key=uuid4().hex).id


def attempt(project, config, step, number):
    program = Program(kind="cells", framework="torch", cells=(Cell(number=1, cell_id="a", source="fit()"),))
    bundle = assemble(Capture(program=program), context_dir=Path(project), protocol=PROTOCOL, cache=HashCache(None))
    session = Session(url, token)
    calls = itertools.count(1)

    def count(frame, event, argument):
        if next(calls) == step:
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    outcome = {"bundle": bundle.manifest.id}
    try:
        threading.setprofile(count)
        sys.setprofile(count)
        try:
            outcome["experiment"] = submit(session, bundle, config, 0 if step else number)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    except KeyboardInterrupt:
        outcome["interrupted"] = True
        outcome["again"] = submit(session, bundle, config)
    outcome["calls"] = next(calls) - 1
    session.close()
    own = [thread for thread in threading.enumerate() if thread.name.startswith("det-pack")]
    for thread in own:
        thread.join(60)
    outcome["threads"] = [thread.name for thread in own if thread.is_alive()]
    return outcome


for line in sys.stdin:
    sys.stdout.flush()
    if not (process := os.fork()):
        try:
            print(json.dumps(attempt(**json.loads(line))), flush=True)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(json.dumps({"code": os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}), flush=True)
"""
CONFIG = {
    "hyperparameters": {"global_batch_size": 32},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
}


class Submitter:
    """Submits projects in processes that end, or are interrupted, after a number of calls of functions."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, draw: random.Random) -> None:
        self._process = process
        self._folder = folder
        self._draw = draw

    def new_project(self) -> Path:
        """Make a folder with contents that no master has seen."""
        project = self._folder / f"project{len(list(self._folder.iterdir()))}"
        project.mkdir()
        (project / "noise.bin").write_bytes(self._draw.randbytes(1_500_000))
        for number in range(6):
            (project / f"module{number}.py").write_text(f"x = {self._draw.random()}\n" * 400)
        return project

    def submit(self, project: Path, step: int = 0, number: int = 0) -> dict[str, Any]:
        """Submit a project; return how that has ended.

        The signal `number`, if any, comes at the call `step` of a function; 0 is when the bundle has arrived.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"project": str(project), "config": CONFIG, "step": step, "number": number}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        outcome: dict[str, Any] = {}
        while "code" not in outcome:
            outcome |= json.loads(self._process.stdout.readline())
        return outcome


@contextmanager
def submitting(master: Master, folder: Path, home: Path, draw: random.Random) -> Iterator[Submitter]:
    """Run a submitter for the block; `home` is the folder that it takes for its user's."""
    folder.mkdir()
    command = [sys.executable, "-c", SUBMITTER, str(master.client.base_url).rstrip("/"), master.token]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"DET_HOME": str(home)}, **pipes) as process:  # type: ignore[call-overload]
        yield Submitter(process, folder, draw)
        process.stdin.close()


def check_all_is_whole(master: Master, home: Path) -> list[int]:
    """See that there is nothing that cannot be used; return the experiments."""
    store = BlobStore(str(home / "blobs"))
    for path in (home / "blobs").glob("??/*"):
        store.read(path.name.partition(".")[0])  # which verifies it
    found = [one["id"] for one in master.get("/experiments", limit=1000)]
    for number in found:
        detail = master.get(f"/experiments/{number}")
        bundle = BundleManifest.model_validate(master.get(f"/bundles/{detail['bundle_id']}"))
        assert store.missing(bundle.hashes()) == []
    return found


def states_of_blobs(home: Path) -> dict[str, tuple[int, int]]:
    """Return what tells that blobs are the same files as before."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (home / "blobs").glob("??/*")}


@pytest.mark.parametrize("way", ["by HTTP", "through its folder"])
def test_nothing_half_is_there_and_the_next_submit_takes_it_up(tmp_path: Path, way: str) -> None:
    seed = int(os.environ.get("DET_CUTS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DET_CUTS_SEED={seed}")  # shown where the test fails
    draw = random.Random(seed)
    home = tmp_path / "home"
    with running_master(home) as master:
        user = home if way == "through its folder" else tmp_path / "user"
        if user == home:
            mark = start_mark(os.getpid()) or ""
            running = RuntimeFile(
                url=str(master.client.base_url).rstrip("/"),
                pid=os.getpid(),
                start=mark,
                version=__version__,
                protocol=PROTOCOL,
                python="",
                started="",
            )
            Home(home).runtime.write_text(running.model_dump_json())
        with submitting(master, tmp_path / "projects", user, draw) as submitter:
            calls = submitter.submit(submitter.new_project())["calls"]
            assert calls > 500
            whole = len(check_all_is_whole(master, home))
            assert whole == 1
            kept = 0
            # How many calls an attempt makes varies by some percent: the last tenth may not be reached.
            cuts = [(number, draw.randrange(1, calls * 9 // 10)) for number in [signal.SIGKILL, signal.SIGINT] * CUTS]
            cuts.append((signal.SIGKILL, 0))  # of the drawn moments, all may lie before anything has arrived
            for number, step in cuts:
                project = submitter.new_project()
                ended = submitter.submit(project, step, number)
                blobs = states_of_blobs(home)
                after = len(check_all_is_whole(master, home))
                if number == signal.SIGKILL:
                    assert ended["code"] == -signal.SIGKILL, f"call {step} of {calls}: {ended}"
                    assert after - whole in (0, 1)  # the last calls are those after its creation
                    again = submitter.submit(project)
                    assert again["code"] == 0
                    kept += len(states_of_blobs(home)) - len(blobs) < 7
                    whole = after + 1
                else:
                    assert ended["code"] == 0, f"call {step} of {calls}: {ended}"
                    assert ended["threads"] == [], f"call {step} of {calls}"
                    assert "again" in ended or "experiment" in ended
                    assert after - whole in (1, 2)
                    whole = after
                assert len(check_all_is_whole(master, home)) == whole
                assert blobs.items() <= states_of_blobs(home).items(), "what had arrived was not sent again"
            assert kept, "in none had anything arrived"
            if way == "by HTTP":
                deadline = time.monotonic() + 60
                while list((home / "blobs" / ".incoming").iterdir()):
                    assert time.monotonic() < deadline
                    time.sleep(0.02)

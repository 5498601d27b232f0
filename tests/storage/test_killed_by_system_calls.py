"""A process that publishes checkpoints is killed at system calls that are drawn: nothing partial is ever listed.

``DET_CALLS_SEED`` repeats a run. `test_checkpoints` kills before each call of Python's; this one between the calls of
the system under them: before a file is synchronised, before the rename has come to the disk.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from det_native.storage.checkpoints import CheckpointStorage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here"),
]

# How often one thread makes the call while three checkpoints are published, about.
CALLS = {"fsync": 12, "rename": 3}
KILLS = 2

PUBLISH = """
import sys
sys.path.insert(0, {tests!r})
from test_checkpoints import publish
from det_native.storage.checkpoints import CheckpointStorage

storage = CheckpointStorage(sys.argv[1])
for batch in range(1, 4):
    print(publish(storage, batch=batch).uuid, flush=True)
"""


@pytest.mark.parametrize("call", CALLS)
def test_nothing_partial_is_listed_and_nothing_published_is_lost(tmp_path: Path, call: str) -> None:
    seed = int(os.environ.get("DET_CALLS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DET_CALLS_SEED={seed}")  # shown where the test fails
    program = PUBLISH.format(tests=str(Path(__file__).parent))
    killed = 0
    for when in random.Random(seed).sample(range(1, CALLS[call] + 1), min(KILLS, CALLS[call])):
        folder = tmp_path / str(when)
        tracing = ["-f", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={when}"]
        command = ["strace", *tracing, sys.executable, "-c", program, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        killed += done.returncode != 0
        storage = CheckpointStorage(str(folder))
        listed = [manifest.uuid for manifest in storage.list()]
        published = done.stdout.split()
        assert set(published) <= set(listed), f"{call} {when}"
        assert len(listed) <= len(published) + 1
        for uuid in listed:
            storage.fetch(uuid, tmp_path / f"copy-{when}-{uuid}")
    assert killed

"""Workers die with their agent, however it ends; and only then."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from agent_parts import ENTRIES, WORKER, ThreadBridge, text_of, trial_job, until

from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.agent.guarding import Guard
from det_native.master.launch.ray.asks.serving import AskServer

pytestmark = pytest.mark.slow

# An agent in a process of its own; no bridge ever comes.
AGENT = """
import asyncio, signal, sys
from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.messages import Worker

agent = NodeAgent(sys.argv[1], "cluster", "cpu", 2, entry="launch_entries:run")
started = asyncio.run(agent.start("r1", 0, sys.argv[2], Worker(framework="python")))
print(started["pid"], flush=True)
signal.pause()
"""


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_workers_and_their_children_die_with_a_killed_agent(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    job = trial_job(home, "r1", "wait", family=True).model_dump_json()
    environment = {**os.environ, "PYTHONPATH": ENTRIES}
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(folder), job], stdout=subprocess.PIPE, text=True, env=environment
    ) as agent:
        assert agent.stdout is not None
        worker = int(agent.stdout.readline())
        output = folder / "runs" / "r1" / "output.log"
        until(lambda: "waiting" in text_of(output))
        children = [int(line.split()[1]) for line in text_of(output).splitlines() if line.startswith("child")]
        family = [worker, *children, *(child.pid for child in psutil.Process(agent.pid).children(recursive=True))]
        os.kill(agent.pid, signal.SIGKILL)
    until(lambda: all(map(gone, family)))


@pytest.mark.soak
def test_workers_live_on_when_the_standbys_are_stopped(
    make_agent: Callable[..., NodeAgent], server: AskServer, home: Path
) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        bridge.call(agent.warm(WORKER))
        until(lambda: bridge.call(agent.standbys()).get("python"))
        job = trial_job(home, "r1", "hold").model_dump_json()
        started = bridge.call(agent.start("r1", 0, job, WORKER))
        assert started["standby"] == "ready"
        bridge.call(agent.close(kill_workers=False))
        assert bridge.call(agent.standbys()) == {}
    with ThreadBridge(server, [agent], "of the next master") as bridge:
        assert bridge.call(agent.runs()) == {"r1": [0]}
        Path(bridge.call(agent.facts()).folder, "runs", "r1", "go").write_text("0")
        [ended] = bridge.wait_for(("r1", 0))
        assert ended.code == 0
    asyncio.run(agent.close(kill_workers=True))
    asyncio.run(agent.close(kill_workers=True))


def test_a_guard_that_is_told_to_end_kills_nothing_and_another_one_starts_where_it_was_killed() -> None:
    guard = Guard()
    with subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", "import sys; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **guard.variables},
    ) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        first = guard.pid
        os.kill(first, signal.SIGKILL)
        until(lambda: (guard.look_after(), guard.pid != first)[1])
        guard.close()
        assert worker.poll() is None
        assert worker.stdin is not None
        worker.stdin.close()
        assert worker.wait(60) == 0

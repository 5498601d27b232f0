"""A real Ray cluster of several nodes on this machine, at loopback only."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import launch_entries
import psutil
import pytest

HERE = Path(__file__).parent


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class RayNode:
    """A node: its process and Ray's id of it."""

    def __init__(self, pid: int, node_id: str, pipes: subprocess.Popen[str]) -> None:
        self.pid = pid
        self.id = node_id
        #: Whether it hangs, or was told to end: it is no whole machine of the cluster any more.
        self.leaves = False
        self._pipes = pipes
        self._hung: list[psutil.Process] = []

    def processes(self) -> list[psutil.Process]:
        """Return its processes.

        Ray's own processes have the node's script as an ancestor; workers of agents are in sessions of their own, and
        are below an agent.
        """
        try:
            root = psutil.Process(self.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def hang(self) -> None:
        """Stop all its processes, as if the machine had been frozen."""
        self.leaves = True
        self._hung = self.processes()
        _signal(self._hung, signal.SIGSTOP)

    def living(self) -> list[psutil.Process]:
        """Return those of its processes that live, after it was stopped."""
        return [process for process in self._hung if _lives(process)]

    def go_on(self) -> None:
        """Have it go on."""
        _signal(self._hung, signal.SIGCONT)

    def shut_down(self) -> None:
        """Tell it to end, as whoever takes the machine away does: Ray drains it first."""
        self.leaves = True
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it as a machine that loses its power does: all processes at once, without a word."""
        family = {*self._hung, *self.processes()}
        _signal(family, signal.SIGSTOP)
        _signal(family, signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
        for pipe in (self._pipes.stdin, self._pipes.stdout):
            assert pipe is not None
            pipe.close()


def _hiding(folder: Path) -> list[str]:
    """Return what a command is to begin with for its processes to see an empty folder in the place of this one."""
    hiding = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*hiding, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("Tests may not hide folders from processes here (unshare --mount).")
    return hiding


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class RayCluster:
    """The cluster; its workers run ``launch_entries``.

    Parameters
    ----------
    redis : str, optional
        ``host:port`` of a Redis in which the head keeps what it knows: another one at its address then knows it, too.
    environment : dict of str to str
        Of its processes, besides what they need.

    Attributes
    ----------
    address, client_address : str
        ``host:port`` of the cluster, ``ray://host:port`` of its client server if it has one.
    folder : Path
        Of its files; agents have theirs in ``home``.
    """

    def __init__(self, cpus: int = 4, *, client: bool = False, redis: str = "", **environment: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # Ray's sockets need a short path
        (self.folder / "home").mkdir()
        shims = self.folder / "shims"
        shims.mkdir()
        own = [str(shims), str(Path(launch_entries.__file__).parent)]
        # Every process of Ray imports it where it is installed, and that takes seconds; all do without.
        (shims / "rfc3987_syntax.py").write_text('raise ImportError("not in tests")\n')
        self.environment = {
            **os.environ,
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder),
            "PYTHONPATH": os.pathsep.join([*own, *filter(None, [environment.pop("PYTHONPATH", "")])]),
            "DET_AGENT_ENTRY": "launch_entries:run",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_AUTH_MODE": "disabled",
            # Ray makes its workers nice, and those of a busy machine would starve.
            "RAY_worker_niceness": "0",
            # One process is started when it is wanted; by default there is one for each CPU from the start.
            "RAY_enable_worker_prestart": "0",
            # A node that is gone is noticed after two seconds, one that hangs after ten: a busy one answers late.
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "3",
            "RAY_health_check_timeout_ms": "3000",
            "RAY_health_check_initial_delay_ms": "0",
            **environment,
        }
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        arguments: dict[str, Any] = {"gcs_server_port": port, "temp_dir": str(self.folder / "t"), "num_cpus": cpus}
        arguments |= {"include_dashboard": False, "dashboard_port": free_port()}
        self.client_address = ""
        if client:
            arguments["ray_client_server_port"] = free_port()
            self.client_address = f"ray://127.0.0.1:{arguments['ray_client_server_port']}"
        self.nodes: list[RayNode] = []
        self._numbers = itertools.count()
        self._of_head = arguments
        self._environment_of_head = {"RAY_REDIS_ADDRESS": redis} if redis else {}
        self.head = self._start(head=True, **arguments)

    def start_head(self) -> None:
        """Start the head again, at the same address."""
        self.head = self._start(head=True, **self._of_head)

    def add_node(
        self,
        cpus: int = 2,
        gpus: int = 0,
        labels: dict[str, str] | None = None,
        *,
        address: str = "",
        without: Path | None = None,
    ) -> RayNode:
        """Add a node.

        `address` is where it is reached, loopback by default. It sees an empty folder in the place of `without`; the
        test is skipped if that may not be.
        """
        arguments: dict[str, Any] = {"gcs_address": self.address, "redis_address": self.address, "labels": labels or {}}
        if address:
            arguments["node_ip_address"] = address
        return self._start(without, head=False, num_cpus=cpus, num_gpus=gpus, **arguments)

    def kill_node(self, node: RayNode) -> None:
        """Have a machine lose its power."""
        node.kill()
        self.nodes.remove(node)

    def stop(self) -> None:
        """End all nodes and remove their files."""
        for node in reversed(self.nodes):
            node.kill()
        self.nodes = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, without: Path | None = None, **arguments: Any) -> RayNode:
        hiding = [] if without is None else _hiding(without)
        log = self.folder / f"node-{next(self._numbers)}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*hiding, sys.executable, str(HERE / "ray_node.py"), json.dumps(arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.environment | (self._environment_of_head if arguments["head"] else {}),
                start_new_session=True,
                text=True,
            )
        assert process.stdout is not None
        process.wait()
        line = process.stdout.readline().split()
        assert line, log.read_text()
        node = RayNode(int(line[0]), line[1], process)
        self.nodes.append(node)
        return node

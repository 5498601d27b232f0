"""What the tests of faults are made of: a real master, a real kernel, scripts, and a gate that holds a worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
from click.testing import CliRunner
from jupyter_client.manager import KernelManager

from det_native.client.command import cli
from det_native.client.connect import connect
from det_native.client.events import EventFeed
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.starting import LONGEST_START_SECONDS
from det_native.client.waiting import wait as wait_for_end
from det_native.schema import rest, routes
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.states import ExperimentState

# For what must come: only a defect lets it pass.
PATIENCE = 120.0
_FOREIGN = ("DET_MASTER", "DET_MASTER_ADDR", "DET_TOKEN", "DET_RECORD")


class Cluster:
    """A home folder with a master of its own, which is no child of this process: it outlives whoever starts it."""

    def __init__(self, folder: Path, slots: str = "2") -> None:
        self.folder = folder
        self.slots = slots
        self.framework: str | None = None
        self.home = Home(folder / "home")
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all that belongs to this cluster, which are also how its processes are found."""
        kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        settings = {"DET_HOME": str(self.home.path), "DET_SLOTS": self.slots, "TMPDIR": str(self.temporary)}
        return kept | settings | {"TF_CPP_MIN_LOG_LEVEL": "3", "MPLBACKEND": "agg"}

    @property
    def interpreter(self) -> str:
        """The Python that runs scripts, commands and the master."""
        return sys.executable

    def script(self, source: str, *arguments: str) -> str:
        """Run a Python script that uses this cluster; return what it printed."""
        path = self.folder / "script.py"
        path.write_text(source)
        return self.command(str(path), *arguments)

    def command(self, *arguments: str, patience: float = PATIENCE) -> str:
        """Run the interpreter with arguments; return what it printed."""
        done = subprocess.run(
            [self.interpreter, *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def det(self, *arguments: str) -> str:
        """Run the ``det`` command."""
        return self.command("-m", "det_native.client.command", *arguments)

    def shown(self, *arguments: str) -> str:
        """Return what the ``det`` command prints, called in this process."""
        called = CliRunner().invoke(cli, arguments, env={"DET_HOME": str(self.home.path)}, catch_exceptions=False)
        assert called.exit_code == 0, called.output
        return called.stdout

    def start(self, framework: str | None = None) -> None:
        """Start the master as a submit does; with a framework, standbys of it get warm."""
        self.framework = framework or self.framework
        self.command(
            "-c",
            f"from det_native.client.connect import connect; print(connect(framework={framework!r}).url)",
            patience=2 * LONGEST_START_SECONDS,
        )

    @property
    def master(self) -> RuntimeFile:
        """The running master."""
        runtime = read_runtime(self.home)
        assert runtime is not None, self.home.log.read_text()
        return runtime

    def processes(self) -> list[psutil.Process]:
        """Return the live processes of this cluster: master, standbys, workers, and what those started."""
        home = str(self.home.path)
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                    continue
                if home in " ".join(process.cmdline()) or str(self.temporary) in process.environ().get("TMPDIR", ""):
                    found.append(process)
        return found

    def take_down(self) -> None:
        """End master and workers, and see that nothing is left of them."""
        if read_runtime(self.home) is not None:
            self.det("down", "--kill")
        _, alive = psutil.wait_procs(self.processes(), timeout=PATIENCE)
        left = [" ".join(process.cmdline()) for process in alive]
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        assert not left, left
        # An empty one may be left: a master was killed between making it for a standby and starting that.
        folders = [[path.name, *os.listdir(path)] for path in self.temporary.iterdir() if path.name.startswith("det-")]
        assert not [folder for folder in folders if len(folder) > 1], folders

    def running(self) -> set[int]:
        """Return the experiments that have not ended."""
        found = connect(start=False).call(routes.LIST_EXPERIMENTS)
        return {experiment.id for experiment in found if not experiment.state.terminal}

    @contextmanager
    def clearing(self) -> Iterator[Self]:
        """Let the next test find a master and free slots if this one, in the block, fails before it has ended all."""
        before = self.running()
        yield self
        if read_runtime(self.home) is None:
            self.start(self.framework)
        for experiment in self.running() - before:
            connect(start=False).call(routes.KILL_EXPERIMENT, experiment_id=experiment)

    def attach(self, number: int) -> Experiment:
        """Return the handle of an experiment; DET_HOME is this cluster's."""
        return Experiment(HttpSource(connect(start=False)), number)


class _Silent:
    """Shows nothing; keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def update(self, fraction: float, text: str) -> None:
        """Show nothing."""

    def flush(self) -> None:
        """Nothing is held back."""

    def message(self, text: str) -> None:
        """Keep it."""
        self.messages.append(text)

    def close(self) -> None:
        """Do nothing."""


def ended(experiment: Experiment, state: ExperimentState) -> rest.Trial:
    """Wait for an experiment's end, without raising its failure; return its first trial."""
    wait_for_end(experiment._source, experiment.id, _Silent(), timeout=PATIENCE)
    assert experiment.state is state, f"{experiment.detail().error}\n{experiment.logs()}"
    return experiment.trials[0].detail()


def events_until(experiment: Experiment, holds: Callable[[rest.Event], bool]) -> rest.Event:
    """Follow the experiment's events from its beginning until one of which `holds` is true."""
    deadline = time.monotonic() + PATIENCE
    with EventFeed(experiment._source, experiment.id) as feed:
        while (event := feed.next(max(deadline - time.monotonic(), 0))) is not None:
            if holds(event):
                return event
    raise AssertionError("the experiment ended before that")


def checkpoint_at(experiment: Experiment, batch: int) -> None:
    """Wait until the checkpoint of a batch is complete."""
    events_until(experiment, lambda event: event.type == "checkpoint" and event.data["batch"] == batch)


def assert_complete_rows(experiment: Experiment, batches: int) -> None:
    """Check that the training rows are those of all batches, each once."""
    [trial] = experiment.trials
    assert [row["batch"] for row in trial.metrics("training")] == list(range(1, batches + 1))
    validations = [row["batch"] for row in trial.metrics("validation")]
    assert validations == sorted(set(validations))
    assert validations[-1] == batches


@dataclass
class Visitor:
    """A worker that has come to the gate and stands still until it is let go."""

    pid: int
    text: str
    line: socket.socket

    def go(self) -> None:
        """Let it go on."""
        with self.line:
            self.line.sendall(b"g")

    def die(self, number: int) -> None:
        """Send it a signal; it then stands still no longer, if it lives."""
        with self.line:
            os.kill(self.pid, number)


class Gate:
    """Where code of a test experiment stops until the test says more: the one means of synchronisation."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE)
        self.port = self._listening.getsockname()[1]

    def next(self) -> Visitor:
        """Wait for the next one to come."""
        line, _ = self._listening.accept()
        line.settimeout(PATIENCE)
        pid, _, text = line.makefile().readline().strip().partition(" ")
        return Visitor(int(pid), text, line)

    def close(self) -> None:
        """Close it."""
        self._listening.close()


# The cell that lets a program come to the gate, and wait until its worker has heard that it is to end.
GATE_CELL = """
def gate(port, text=""):
    import os, socket
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(f"{os.getpid()} {text}\\n".encode())
        line.recv(1)

def until_told():
    import gc, sys, time
    kind = sys.modules["det_harness.trial.report"].SpoolReporter
    [reporter] = [each for each in gc.get_objects() if type(each) is kind]
    while not reporter.stop_requested:
        time.sleep(0.01)
"""


@dataclass
class Executed:
    """A cell that runs or has run, and what it has shown."""

    request: str
    number: int = 0
    shown: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def text(self) -> str:
        """Everything that was printed or shown as text."""
        return "".join(self.shown)


class Kernel:
    """An IPython kernel on a cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(cwd=str(folder), env=cluster.environment)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE)
        self._busy = False

    def clear(self) -> None:
        """Interrupt a cell of which a test, because it failed, has not seen the end."""
        if self._busy:
            self._manager.interrupt_kernel()
            self._client.wait_for_ready(timeout=PATIENCE)
            self._busy = False

    def interrupt(self) -> None:
        """Interrupt the cell that runs, as the button of a notebook does."""
        self._manager.interrupt_kernel()

    def kill(self) -> None:
        """SIGKILL the kernel and everything in its group of processes, as a front end that gives up does."""
        [process] = [each for each in psutil.Process().children() if self._manager.connection_file in _line(each)]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)

    def begin(self, source: str, *, silent: bool = False) -> Executed:
        """Execute a cell as a front end does, and do not wait for it; a silent one is no cell of the notebook's."""
        self._busy = True
        return Executed(str(self._client.execute(source, silent=silent, stop_on_error=False)))

    def shows(self, begun: Executed, piece: str) -> None:
        """Wait until a cell that runs shows `piece` in whatever way, by a widget too."""
        next(content for _, content in self._messages(begun) if piece in begun.text or piece in str(content))

    def says(self, begun: Executed, piece: str) -> None:
        """Wait until a cell that runs has written `piece` below itself; what widgets show is no matter."""
        if piece not in begun.text:
            next(content for _, content in self._messages(begun) if piece in begun.text)

    def press_leave(self, begun: Executed) -> None:
        """Press "Leave it running" in the live view of a cell that waits, as a front end without subshells does."""
        offered = (
            content["comm_id"]
            for kind, content in self._messages(begun)
            if kind == "comm_msg" and content["data"].get("state", {}).get("waiting")
        )
        content = {"comm_id": next(offered), "data": {"method": "custom", "content": {"type": "leave"}}}
        self._client.shell_channel.send(self._client.session.msg("comm_msg", content))

    def finish(self, begun: Executed, *, fails: bool = False) -> Executed:
        """Wait for the end of a cell."""
        next(content for kind, content in self._messages(begun) if content.get("execution_state") == "idle")
        while (reply := self._client.get_shell_msg(timeout=PATIENCE))["parent_header"].get("msg_id") != begun.request:
            pass  # of a cell that was interrupted
        self._busy = False
        begun.number = reply["content"]["execution_count"]
        assert bool(begun.error) == fails, f"{begun.text}\n{begun.error}"
        return begun

    def run(self, source: str, *, fails: bool = False) -> Executed:
        """Execute a cell to its end."""
        return self.finish(self.begin(source), fails=fails)

    def run_slowly(self, source: str) -> None:
        """Execute a cell that counts as one that took long."""
        self.run(source)
        self.finish(
            self.begin("__import__('det_native').capture.log._log.executions[-1].time.duration = 20.0", silent=True)
        )

    def _messages(self, begun: Executed) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give what the kernel says about a cell, noted in it."""
        while True:
            message = self._client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != begun.request:
                continue
            kind, content = message["msg_type"], message["content"]
            match kind:
                case "stream":
                    begun.shown.append(content["text"])
                    begun.printed.append(content["text"])
                case "execute_result" | "display_data" | "update_display_data":
                    begun.shown.append(content["data"].get("text/plain", ""))
                case "error":
                    begun.error = f"{content['ename']}: {content['evalue']}"
            yield kind, content

    def submit(self, source: str) -> int:
        """Run a cell that submits `experiment`; return the experiment's number."""
        self.run(source)
        return int(self.value("experiment.id"))

    def submit_with(self, call: str, **settings: object) -> int:
        """Run the cell that submits `experiment` with the hyperparameters `settings`; return its number."""
        self.run(f"settings = {settings}")
        return self.submit(call)

    def value(self, expression: str) -> Any:
        """Return the value of an expression, which JSON must be able to say."""
        text = self.run(f"import json\nprint('VALUE' + json.dumps({expression}))").text
        # A warning that the master is slow to answer may stand below.
        return json.loads(text.rpartition("VALUE")[2].partition("\n")[0])

    def end_of(self, number: int) -> Any:
        """Return what an experiment's training has come to: weights, bit for bit, and rows. `end_of` is defined."""
        return self.value(f"end_of({number})")

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


def line_of(source: str, piece: str) -> int:
    """Return the number of the first line of a cell that has `piece` in it."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if piece in line)


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def running_cluster(folder: Path, framework: str, slots: str = "2") -> Iterator[Cluster]:
    """Run a cluster for the block."""
    cluster = Cluster(folder, slots)
    try:
        cluster.start(framework)
        yield cluster
    finally:
        cluster.take_down()


@contextmanager
def running_kernel(cluster: Cluster, name: str, *cells: str) -> Iterator[Kernel]:
    """Run a kernel for the block, with cells executed."""
    kernel = Kernel(cluster, cluster.folder / name)
    try:
        for source in cells:
            kernel.run(source)
        yield kernel
    finally:
        kernel.close()

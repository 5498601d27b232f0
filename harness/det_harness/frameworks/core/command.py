"""Runs a command that is an experiment's ``entrypoint``: a process of its own, which reports to this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from det_harness.core.serving import ReporterServer
from det_harness.frameworks.core.machines import OnMachines
from det_harness.frameworks.core.variables import variables_of
from det_harness.trial.services import Outcome, Services
from det_native.core.command import CommandCall, script_of
from det_native.errors import CommandFailedError, InvalidHP
from det_native.schema.job import AttachedProcess, TrialJob
from det_native.schema.memory_kills import MemoryKills

_LINES = 20
_TAIL_BYTES = 1 << 14


class CommandController:
    """Starts the command of one trial, and waits for its end."""

    def __init__(self, call: CommandCall, services: Services) -> None:
        assert services.job is not None
        self._call = call
        self._services = services
        self._job = services.job
        place = services.communicator
        self._machines = place if isinstance(place, OnMachines) else None
        self._output = Path(self._job.directory) / "output.log"

    def run(self) -> Outcome:
        """Run the command to its end.

        Raises
        ------
        CommandFailedError
            If it fails.
        """
        services = self._services
        server = ReporterServer(services)
        with (
            tempfile.TemporaryDirectory(prefix="det-command-") as folder,
            server.listening(Path(folder) / "worker.sock"),
        ):
            job = self._write_job(server, Path(folder))
            code = self._execute(variables_of(job, Path(folder), self._machines))
        if code or isinstance(server.failure, InvalidHP):
            raise server.failure or self._failure(code)
        if not server.used:
            services.checkpoints.begin(0)
            print(self._nothing_reported(), flush=True)
        return self._outcome(server)

    def _write_job(self, server: ReporterServer, folder: Path) -> TrialJob:
        """Write the file that the processes of the command are given; return the job that is in it."""
        resume, notice = self._services.checkpoints.choose()
        bundle = self._job.bundle.model_copy(
            update={"files": (), "links": (), "values": (), "streams": (), "proof": None, "reads": (), "places": ()}
        )
        attached = AttachedProcess(
            socket=str(folder / "worker.sock"),
            key=server.key.hex(),
            tensorboard=str(self._services.tensorboard or ""),
            notice=notice,
            **({} if self._machines is None else {"addresses": self._machines.addresses}),
        )
        job = self._job.model_copy(update={"bundle": bundle, "attached": attached, "resume": resume})
        descriptor = os.open(folder / "job.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(job.model_dump_json())
        return job

    def _execute(self, environment: Mapping[str, str]) -> int:
        """Run the command; return how it ended."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._begin = self._output.stat().st_size if self._output.exists() else 0
        self._memory_kills = MemoryKills(os.getpid())
        try:
            with subprocess.Popen(self._call.words, env=environment, stdin=subprocess.DEVNULL) as process:
                return process.wait()
        except OSError as error:
            raise CommandFailedError(
                f"The command {self._call.title} cannot be started: {self._call.words[0]}: {error.strerror}. It is "
                "looked for on the PATH of the workers, and by its path in the directory that was sent."
            ) from None

    def _failure(self, code: int) -> CommandFailedError:
        """Return the error of a command that has failed by itself."""
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        how += "; the system has killed processes, since memory ran out" if self._memory_kills.any() else ""
        lines = self._last_lines()
        said = f" Its last lines:\n{lines}" if lines else ""
        return CommandFailedError(f"The command {self._call.title} {how}.{said}")

    def _last_lines(self) -> str:
        with self._output.open("rb") as file:
            file.seek(max(self._begin, self._output.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
        lines = text.splitlines()
        ranks = [line for line in lines if line.startswith("[rank=")]  # what a launcher says after them is no reason
        return "\n".join((ranks or lines)[-_LINES:])

    def _nothing_reported(self) -> str:
        script = script_of(self._call.words)
        text = (
            f"The command {self._call.title} has ended and has reported nothing, so no metrics and no checkpoints are "
            "known of it: code reports by `with det.core.init() as context`."
        )
        if script is None:
            return text
        return f"{text} If {script} calls tf.estimator.train_and_evaluate(), write  entrypoint: {script}"

    def _outcome(self, server: ReporterServer) -> Outcome:
        progress = self._services.schedule.progress
        if not server.stopped and not self._services.schedule.over:
            progress.ended = True  # the code says how long it trains
        return Outcome(progress.batches, stopped=server.stopped)

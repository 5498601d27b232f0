"""One trial in processes of its own on this machine, without a master: they run the job that a worker runs.

What they report and print, and how they ended, lies in their folders; the process that started them reads it there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter

from det_harness.local.report import LocalReporter, PrintingReporter
from det_native.schema.endings import Ended, describe
from det_native.schema.exit_report import exit_report_of_run
from det_native.schema.job import EXIT_RANK_FAILED, REPORTS_NAME, TrialJob
from det_native.schema.memory_kills import MemoryKills
from det_native.schema.ranks import rank_jobs
from det_native.schema.rest import (
    AnyReport,
    ArtifactsReport,
    CheckpointReport,
    ComparisonReport,
    EpochReport,
    ExitReport,
    MediaReport,
    MetricsReport,
    NoValidationReport,
    Report,
    StartedReport,
    SystemReport,
)
from det_native.schema.states import MetricKind
from det_native.schema.system_samples import left_samples

OUTPUT_NAME = "output.log"

_POLL_SECONDS = 0.05
# Once one process has failed the others cannot go on; this is for what they write at the moment.
_PEER_TIMEOUT_SECONDS = 8.0
_REPORT: TypeAdapter[AnyReport] = TypeAdapter(Report)


@dataclass(frozen=True)
class RunEnd:
    """How the processes ended.

    Attributes
    ----------
    report : ExitReport or None
        What they left; None if one of them was killed, or has crashed.
    detail : str
        How the first that failed has ended, with its rank where there are several; empty if none failed.
    """

    report: ExitReport | None
    detail: str


def run_in_processes(
    job: TrialJob,
    size: int,
    reporter: LocalReporter | PrintingReporter,
    stop_requested: Callable[[], bool],
    printed: Callable[[str, int | None], None] = lambda text, rank: None,
    ended: Callable[[], None] = lambda: None,
) -> RunEnd:
    """Run a trial in `size` processes, to the end, and return how that was.

    Whatever ends this call, all processes and what they have begun are gone after it, and so is the folder that
    holds that of the job.

    Parameters
    ----------
    job : TrialJob
        Of all of them; without a master.
    size : int
    reporter : LocalReporter or PrintingReporter
        Is told what they report.
    stop_requested : callable
        Whether they are to end, with a checkpoint.
    printed : callable
        Is told each line that they print, with the rank where there are several.
    ended : callable
        Is called when they are gone, before their folders are removed.
    """
    folder = Path(job.directory)
    try:
        with _Processes(rank_jobs(job, size), printed) as processes:
            reports = _Lines(folder / REPORTS_NAME)
            stopped = False
            while True:
                alive = processes.alive()
                processes.show_output()
                for line in reports.new():
                    _pass_on(line, reporter)
                if not alive:
                    reporter.system(left_samples(folder, size))
                    return RunEnd(exit_report_of_run(folder, size), processes.first_failure)
                if not stopped and stop_requested():
                    stopped = True
                    processes.signal(signal.SIGTERM)
                time.sleep(_POLL_SECONDS)
    finally:
        ended()
        shutil.rmtree(folder.parent, ignore_errors=True)  # with the notes of checkpoints under way beside the job's


class _Processes:
    """The processes of the ranks; leaving the block kills those that are left.

    Attributes
    ----------
    first_failure : str
        How the first that failed by itself has ended; empty if none has.
    """

    def __init__(self, jobs: list[TrialJob], printed: Callable[[str, int | None], None]) -> None:
        self._jobs = jobs
        self._temporary: list[str] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._outputs = [_Output(Path(job.directory) / OUTPUT_NAME, job, printed) for job in jobs]
        self._kill_at: float | None = None
        self._memory_kills = MemoryKills(os.getpid())  # they are in the same control group
        self.first_failure = ""

    def __enter__(self) -> _Processes:
        try:
            for job in self._jobs:
                self._start(job)
        except BaseException:
            self._clear_away()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear_away()

    def alive(self) -> bool:
        """Whether any is; those that stay on after another one has failed are killed."""
        codes = [self._code(rank, child) for rank, child in enumerate(self._children)]
        failed = [code for code in codes if code not in (None, 0, EXIT_RANK_FAILED)]
        now = time.monotonic()
        if failed and self._kill_at is None:
            self._kill_at = now + _PEER_TIMEOUT_SECONDS
        if self._kill_at is not None and now >= self._kill_at:
            self.signal(signal.SIGKILL)
        return None in codes

    def _code(self, rank: int, child: subprocess.Popen[bytes]) -> int | None:
        """Return the exit code, None while it lives; note how the first has ended that failed by itself."""
        if child.returncode is not None:
            return child.returncode
        try:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else in this process has waited for it
            return child.poll()
        if pid == 0:
            return None
        child.returncode = code = os.waitstatus_to_exitcode(status)
        if code not in (0, EXIT_RANK_FAILED) and not self.first_failure:
            peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
            by_system = code == -signal.SIGKILL and self._memory_kills.any()
            detail = describe(Ended(code, peak, by_system), asked_to_end=False)
            several = len(self._jobs) > 1
            self.first_failure = f"{_title(self._jobs[rank], of_all=True)}: {detail}" if several else detail
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to each that lives: SIGKILL to all that it has started too."""
        for child in self._children:
            if child.poll() is None:
                with suppress(ProcessLookupError):
                    (os.killpg if number is signal.SIGKILL else os.kill)(child.pid, number)

    def show_output(self) -> None:
        """Print what they have written since."""
        for output in self._outputs:
            output.show()

    def _start(self, job: TrialJob) -> None:
        folder = Path(job.directory)
        folder.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(prefix="det-")
        self._temporary.append(temporary)
        framework = job.bundle.program.framework
        command = [sys.executable, "-P", "-m", "det_harness.worker.standby", "--framework", framework]
        with (folder / OUTPUT_NAME).open("ab") as output:
            child = subprocess.Popen(
                [*command, "--device", "cuda" if job.devices else "cpu"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**_environment(), "DET_WORKER": str(os.getpid()), "TMPDIR": temporary},
                start_new_session=True,  # Ctrl-C in a terminal is for the process that started it
            )
        self._children.append(child)
        assert child.stdin is not None
        with suppress(BrokenPipeError), child.stdin:  # it has ended: its output says why
            child.stdin.write(job.model_dump_json().encode() + b"\n")

    def _clear_away(self) -> None:
        self.signal(signal.SIGKILL)
        for child in self._children:
            child.wait()
            with suppress(ProcessLookupError, PermissionError):  # what it had started and left
                os.killpg(child.pid, signal.SIGKILL)
        for folder in self._temporary:
            shutil.rmtree(folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    """Return the variables of this process without what is of its notebook: how that shows figures."""
    return {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}


class _Lines:
    """Complete lines of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new(self) -> Iterator[bytes]:
        """Yield those that were not there before."""
        with suppress(FileNotFoundError), self._path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield line


class _Output(_Lines):
    """What one process writes, printed here line by line; from all but the first with the rank before it."""

    def __init__(self, path: Path, job: TrialJob, printed: Callable[[str, int | None], None]) -> None:
        super().__init__(path)
        self._rank = job.gang.rank if job.gang is not None else None
        self._before = f"[{_title(job)}] " if self._rank else ""
        self._printed = printed

    def show(self) -> None:
        """Print the new lines."""
        for line in self.new():
            text = line.decode(errors="backslashreplace").rstrip()
            print(f"{self._before}{text}")
            self._printed(text, self._rank)


def _title(job: TrialJob, *, of_all: bool = False) -> str:
    """Return what a process is called: by its role, where it has one."""
    gang = job.gang
    if gang is None:
        return ""
    return gang.role or (f"rank {gang.rank} of {gang.size}" if of_all else f"rank {gang.rank}")


def _pass_on(line: bytes, reporter: LocalReporter | PrintingReporter) -> None:
    report = _REPORT.validate_json(line)
    if isinstance(report, CheckpointReport):
        reporter.checkpoint(report.location, report.manifest)
    elif isinstance(report, MetricsReport):
        _pass_on_metrics(report, reporter)
    elif isinstance(report, MediaReport):
        reporter.media(report.items)
    elif isinstance(report, EpochReport):
        reporter.epoch(report.row)
    elif isinstance(report, ArtifactsReport):
        reporter.artifacts(report.files, report.removed)
    elif isinstance(report, SystemReport):
        reporter.system(report.samples)
    elif isinstance(report, ComparisonReport):
        reporter.compare_by(report.name, smaller_is_better=report.smaller_is_better)
    elif isinstance(report, NoValidationReport):
        reporter.no_validation()
    elif isinstance(report, StartedReport):
        reporter.started(report.length)


def _pass_on_metrics(report: MetricsReport, reporter: LocalReporter | PrintingReporter) -> None:
    if report.kind is MetricKind.TRAINING:
        reporter.training(report.batches, report.metrics)
    elif report.kind is MetricKind.LOGGED:
        for row, batch in enumerate(report.batches):
            reporter.logged(batch, report.row(row))
    else:
        reporter.validation(report.batches[0], report.row(0))

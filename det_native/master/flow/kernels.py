"""Processes of the user's that train: whether they live, and what they write. They are never sent a signal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from det_native.master.flow.watchdog import span
from det_native.master.launch.base import Exit, Output
from det_native.master.launch.local_run import OUTPUT_NAME
from det_native.master.launch.output import punch_hole, read_output
from det_native.schema.exit_report import EXIT_NAME
from det_native.schema.kernel_runs import KernelProcess
from det_native.schema.processes import is_alive, is_near, is_stopped

#: A process of another machine of which nothing was heard for so long counts as ended, until it is heard of again.
SILENT_SECONDS = 15 * 60.0
# One that has left its exit report on the disk, and lives, has given up to send it after this time.
UNSENT_SECONDS = 10.0


@dataclass
class _Run:
    process: KernelProcess
    folder: Path
    near: bool
    said: bool = False  # that it has ended


class Kernels:
    """The runs in processes of the user's, with those verbs of a launcher that need no power over them.

    Used by the decision thread only, but for :meth:`folder_of` and :meth:`move`.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._alive: set[str] = set()

    def add(self, run_id: str, process: KernelProcess, folder: Path) -> None:
        """Look after a run."""
        near = is_near(process.start, process.namespace) and (":" in process.start or folder.is_dir())
        self._runs[run_id] = _Run(process, folder, near)
        self._alive.add(run_id)

    def has(self, run_id: str) -> bool:
        """Return whether a run is one of these."""
        return run_id in self._runs

    def folder_of(self, run_id: str) -> Path | None:
        """Return the folder of a run, which may be on another machine; None of a run that is none of these."""
        run = self._runs.get(run_id)
        return None if run is None else run.folder

    def move(self, run_id: str, folder: Path) -> None:
        """The folder of a run that is over has moved."""
        self._runs[run_id].folder = folder

    def has_ended(self, run_id: str) -> None:
        """The run has sent its exit report: it is over, though its process lives on."""
        self._runs[run_id].said = True

    def poll(self, silence: Callable[[str], float]) -> list[Exit]:
        """Return the runs that ended since the last call, each once.

        Parameters
        ----------
        silence : callable
            Seconds since a run was heard of.
        """
        ends = [_end_of(run_id, self._runs[run_id], silence(run_id)) for run_id in sorted(self._alive)]
        exits = [end for end in ends if end is not None]
        self._alive -= {exit.run_id for exit in exits}
        return exits

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        """Return what a run has printed since `offset` bytes, whole lines only unless it has ended."""
        run = self._runs[run_id]
        return read_output(run.folder / OUTPUT_NAME, offset, ended=run_id not in self._alive)

    def release_output(self, run_id: str, rank: int, start: int, end: int) -> None:
        """Give back the disk space of these bytes of a run's output: nobody reads them again."""
        punch_hole(self._runs[run_id].folder / OUTPUT_NAME, start, end)

    def stopped(self, run_id: str) -> list[int]:
        """Return the number of its process if a signal has stopped it."""
        run = self._runs[run_id]
        return [run.process.pid] if run.near and is_stopped(run.process.pid) else []

    def kill(self, run_id: str, *, grace: float = 0.0) -> None:
        """Do nothing: the answer to its next report asks it to end."""


def _end_of(run_id: str, run: _Run, silent: float) -> Exit | None:
    """Return how a run has ended; None if it goes on."""
    if run.said or (silent > UNSENT_SECONDS and (run.folder / EXIT_NAME).is_file()):
        return Exit(run_id, None, "its exit report is here")
    if run.near:
        alive = is_alive(run.process.pid, run.process.start)
        return None if alive else Exit(run_id, None, "its process is gone")
    why = f"nothing was heard of it for {span(silent)}"
    return Exit(run_id, None, why, interrupted=why) if silent > SILENT_SECONDS else None

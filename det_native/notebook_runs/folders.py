"""The folders of notebook runs in a home: made, read, and removed when they are old."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from det_native.errors import NotFoundError, StorageError
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest
from det_native.schema.private_files import write_private
from det_native.schema.processes import is_alive, start_mark

#: Ended runs of one notebook that are kept in any case. Of older ones, those of schedules go, and those whose executed
#: notebooks are kept elsewhere, too.
KEPT_RUNS = 20
# Between a run's folder and its process.
_BEGIN_SECONDS = 30.0
#: Why a run ended that somebody has stopped.
STOPPED = "It was stopped."
_LOST = "Its process ended without a word: the machine was switched off, or it was killed."


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run.

    Attributes
    ----------
    path : Path
        ``<home>/notebook-runs/<id>``.
    """

    path: Path

    @property
    def id(self) -> int:
        """Number of the run."""
        return int(self.path.name)

    @property
    def executed(self) -> Path:
        """The executed notebook."""
        return self.path / "executed.ipynb"

    def content(self) -> bytes:
        """Return the executed notebook as its file has it.

        Raises
        ------
        StorageError
            If it cannot be read.
        """
        try:
            return self.executed.read_bytes()
        except OSError as error:
            why = error.strerror or error
            raise StorageError(f"The executed notebook {self.executed} cannot be read: {why}.") from error

    @property
    def log(self) -> Path:
        """What its process and its kernel wrote outside of cells."""
        return self.path / "log.txt"

    @property
    def experiments(self) -> Path:
        """Numbers of its experiments, a line each, as its kernel writes them."""
        return self.path / "experiments.txt"

    def request(self) -> RunRequest:
        """Return what was asked for."""
        return RunRequest.model_validate_json((self.path / "request.json").read_text(encoding="utf-8"))

    def write_request(self, request: RunRequest) -> None:
        """Keep what was asked for: for this user alone, since parameters may hold anything."""
        write_private(self.path / "request.json", request.model_dump_json())

    def run(self) -> NotebookRun:
        """Return how the run stands; one whose process is gone has failed.

        Raises
        ------
        NotFoundError
            If it is not there, or cannot be read.
        """
        try:
            file = self.path / "state.json"
            run, changed = NotebookRun.model_validate_json(file.read_text(encoding="utf-8")), file.stat().st_mtime
        except (OSError, ValidationError):
            raise NotFoundError(f"Notebook run {self.path.name} does not exist in {self.path.parent}.") from None
        if not run.is_ended and not self.is_alive():
            how = {"state": "STOPPED", "error": STOPPED} if self.is_stopping else {"state": "FAILED", "error": _LOST}
            run = run.model_copy(update={**how, "ended": changed})
        return run.model_copy(update={"experiments": self.experiment_names()})

    def write(self, run: NotebookRun) -> None:
        """Keep how the run stands."""
        write_private(self.path / "state.json", run.model_dump_json())

    def experiment_names(self) -> list[str]:
        """Return its experiments."""
        with suppress(OSError):
            return list(dict.fromkeys(self.experiments.read_text(encoding="utf-8").splitlines()))
        return []

    def experiments_by_master(self) -> dict[str, list[int]]:
        """Return the numbers of its experiments by the address of their master; empty for that of this machine."""
        numbers: dict[str, list[int]] = {}
        for name in self.experiment_names():
            number, _, master = name.partition(" at ")
            if number.isdecimal():
                numbers.setdefault(master or self.request().master, []).append(int(number))
        return numbers

    def note_process(self, pid: int) -> None:
        """Keep which process runs the notebook."""
        write_private(self.path / "process.json", json.dumps({"pid": pid, "mark": start_mark(pid) or ""}))

    def process(self) -> int | None:
        """Return the process that runs the notebook; None if it has ended."""
        with suppress(OSError, ValueError, KeyError):
            noted = json.loads((self.path / "process.json").read_text(encoding="utf-8"))
            if is_alive(noted["pid"], noted["mark"]):
                return int(noted["pid"])
        return None

    def ask_to_stop(self) -> None:
        """Keep that the run is to stop: its process may not listen to signals yet."""
        (self.path / "stop").touch()

    @property
    def is_stopping(self) -> bool:
        """Whether the run was asked to stop."""
        return (self.path / "stop").exists()

    def is_alive(self) -> bool:
        """Whether a process runs the notebook, or is about to."""
        if not (self.path / "process.json").exists():
            with suppress(OSError):
                return time.time() - (self.path / "state.json").stat().st_mtime < _BEGIN_SECONDS
        return self.process() is not None


def runs_folder(home: Home) -> Path:
    """Return the folder of all runs."""
    return home.path / "notebook-runs"


def make_folder(home: Home) -> RunFolder:
    """Make the folder of a new run, with the next number; see :func:`starting`."""
    root = runs_folder(home)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    number = max((folder.id for folder in _folders(home)), default=0)
    last = root / "last"
    with suppress(OSError, ValueError):  # numbers of removed runs are not given again
        number = max(number, int(last.read_text(encoding="utf-8")))
    folder = root / str(number + 1)
    folder.mkdir(mode=0o700)
    write_private(last, folder.name)
    return RunFolder(folder)


def starting(home: Home) -> FileLock:
    """Return the lock that is held while a run is begun: two with one key are one."""
    root = runs_folder(home)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FileLock(root / "start.lock", timeout=60)


def find_run(home: Home, number: int) -> RunFolder:
    """Return the folder of a run.

    Raises
    ------
    NotFoundError
        If it is not there.
    """
    folder = RunFolder(runs_folder(home) / str(number))
    folder.run()
    return folder


def list_runs(home: Home, path: str | None = None) -> list[NotebookRun]:
    """Return the runs, newest first: of one notebook only if its path is given."""
    runs: list[NotebookRun] = []
    for folder in sorted(_folders(home), key=lambda folder: folder.id, reverse=True):
        with suppress(NotFoundError):
            run = folder.run()
            if path is None or run.path == path:
                runs.append(run)
    return runs


def with_others(here: list[NotebookRun], there: list[NotebookRun]) -> list[NotebookRun]:
    """Return the runs of this machine and those that a master has listed, newest first, each once."""
    known = {(run.executed, run.started) for run in here}
    others = [run for run in there if (run.executed, run.started) not in known]
    return sorted([*here, *others], key=lambda run: -run.started)


def run_of_key(home: Home, key: str) -> RunFolder | None:
    """Return the run that was begun with a key."""
    for folder in _folders(home):
        with suppress(OSError, ValidationError):
            if key and folder.request().key == key:
                return folder
    return None


def remove_old_runs(home: Home, path: str) -> None:
    """Remove the oldest ended runs of a notebook, beyond :data:`KEPT_RUNS`, but for only copies that a user made."""
    ended = [run for run in list_runs(home, path) if run.is_ended]
    for run in ended[KEPT_RUNS:]:
        if run.kept or run.schedule is not None:
            shutil.rmtree(runs_folder(home) / str(run.id), ignore_errors=True)


def _folders(home: Home) -> Iterator[RunFolder]:
    with suppress(OSError):
        for entry in os.scandir(runs_folder(home)):
            if entry.name.isdecimal() and entry.is_dir():
                yield RunFolder(Path(entry.path))

"""What the roles of a trial tell each other, by files in the folder of the run: no network is needed for it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from det_native.errors import RankLostError
from det_native.schema.exit_report import read_exit_report
from det_native.schema.ranks import rank_folder

MEETING_SECONDS = 300.0
_POLL_SECONDS = 0.05

Ending = Literal["completed", "stopped"]


class Exchange:
    """The folder in which the processes of one run leave what they have to say.

    Parameters
    ----------
    run : Path
        The folder of the run.
    """

    def __init__(self, run: Path, size: int) -> None:
        self._run = run
        self._size = size
        self._folder = run / "roles"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._read = 0

    def say(self, name: str, value: Any) -> None:
        """Leave a value, which the others see all of or nothing."""
        temporary = self._folder / f".{name}.{os.getpid()}"
        temporary.write_text(json.dumps(value), encoding="utf-8")
        temporary.replace(self._folder / name)

    def heard(self, name: str) -> Any:
        """Return a value that somebody has left, None if nobody has."""
        try:
            return json.loads((self._folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def await_all(self, names: list[str], what: str, *, seconds: float = MEETING_SECONDS) -> list[Any]:
        """Wait until all of these values are there; return them.

        Raises
        ------
        RankLostError
            If one does not come.
        """
        until = time.monotonic() + seconds
        while True:
            found = [self.heard(name) for name in names]
            if None not in found:
                return found
            if time.monotonic() >= until:
                missing = ", ".join(name for name, value in zip(names, found, strict=True) if value is None)
                raise RankLostError(
                    f"Within {seconds:g} seconds, {what} ({missing} in {self._folder}). The output of the other "
                    "processes says why."
                )
            time.sleep(_POLL_SECONDS)

    def end(self, how: Ending) -> None:
        """Say that the training is over."""
        self.say("end", how)

    def ending(self) -> Ending | None:
        """Return how the training is over, None while it is not."""
        found: Ending | None = self.heard("end")
        return found

    def has_ended(self, rank: int) -> bool:
        """Return whether a process has left its exit report: it does nothing more for the trial."""
        return (rank_folder(self._run, rank) / "exit.json").exists()

    def has_failed(self, rank: int) -> bool:
        """Return whether a process has left an exit report that tells of a failure."""
        report = read_exit_report(rank_folder(self._run, rank))
        return report is not None and report.reason.failed

    def add_evaluation(self, step: int, metrics: dict[str, Any]) -> None:
        """Leave an evaluation for the process that reports."""
        with (self._folder / "evaluations").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([step, metrics]) + "\n")

    def new_evaluations(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the evaluations that were not seen before."""
        with suppress(FileNotFoundError), (self._folder / "evaluations").open("rb") as stream:
            stream.seek(self._read)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                step, metrics = json.loads(line)
                yield step, metrics


def wait_until(holds: Callable[[], bool], seconds: float = float("inf")) -> bool:
    """Wait until something holds, at most so long; return whether it does."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True

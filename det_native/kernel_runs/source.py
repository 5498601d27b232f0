"""Facts of a run of this process, from the master that has it: whoever asks first waits until one has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.errors import NotRecordedError
from det_native.kernel_runs.recording import Recording
from det_native.kernel_runs.unrecorded import UnrecordedRun
from det_native.schema import rest, routes

Loader = Callable[[rest.Checkpoint, Path], Any]

#: So long the first question after the training waits for its last reports.
SETTLE_SECONDS = 15.0
_LOOK_SECONDS = 0.02


class Sender(Protocol):
    """What is needed of ``det_harness.trial.report.SpoolReporter``."""

    def wait_sent(self, timeout: float) -> bool:
        """Wait until the master has all that was reported."""


class KernelSource(HttpSource):
    """The source of a run's handle.

    Parameters
    ----------
    recording : Recording
    reports : callable
        Returns what the run has reported and no master has, as JSON.
    load : callable
        Rebuilds the user's model for a checkpoint out of what this process has.
    fetch : callable
        Copies the files of a checkpoint from where this process has saved them.
    """

    def __init__(
        self, recording: Recording, *, reports: Callable[[], Iterable[str]], load: Loader, fetch: Loader
    ) -> None:
        self._recording, self._reports, self._load, self._fetch = recording, reports, load, fetch
        self._sender: Sender | None = None
        self._ended: str | None = None
        self._facts: UnrecordedRun | None = None

    def __repr__(self) -> str:
        return "KernelSource()"

    @property
    def trained_here(self) -> bool:
        """True."""
        return True

    def number(self, *, ask: bool = True) -> int:
        """Return the number of the experiment; 0 if no master is known to have it, and none is to be asked.

        Raises
        ------
        NotRecordedError
            If no master has it.
        """
        if ask:
            assert self._session is not None  # others ask by this number: after the training all of it is there
            return self._recording.wait().experiment_id
        numbers = self._recording.numbers
        return 0 if numbers is None else numbers.experiment_id

    def ended(self, sender: Sender) -> None:
        """Have the next question wait for what `sender` has not sent yet: the training has ended."""
        self._sender = sender
        self._ended = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def _session(self) -> Session:  # type: ignore[override]  # what all questions of a source go through
        try:
            session = self._recording.session()
        except NotRecordedError as error:
            facts, request = self._facts, self._recording.request
            with suppress(FileNotFoundError):  # they are sent at this moment
                facts = facts or UnrecordedRun(request, self._reports(), self._ended, str(error))
            if self._recording.numbers is None and facts is not None:
                self._facts = facts if facts.exit is not None else None
                return cast("Session", facts)
            session = self._recording.session()
        if self._sender is not None:
            if self._sender.wait_sent(SETTLE_SECONDS):
                _wait_for_end(session, self._recording.wait().experiment_id)
            self._sender = None
        return session

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        """Load a checkpoint into what this process has trained."""
        return self._load(checkpoint, directory)

    def download(self, checkpoint: rest.Checkpoint, directory: Path) -> None:
        """Copy a checkpoint: another machine's master, or none, cannot give it, but it lies on this one."""
        if not self._recording.elsewhere and self._recording.numbers is not None:
            return super().download(checkpoint, directory)
        self._fetch(checkpoint, directory)
        (directory / "manifest.json").write_text(checkpoint.manifest.model_dump_json(indent=1))


def _wait_for_end(session: Session, experiment_id: int) -> None:
    """Wait until the master has drawn its conclusions from the last report."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        if session.call(routes.GET_EXPERIMENT, experiment_id=experiment_id).state.terminal:
            return
        time.sleep(_LOOK_SECONDS)

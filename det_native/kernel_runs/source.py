"""Facts of a run of this process, from the master that has it: whoever asks first waits until one has."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.kernel_runs.recording import NotRecordedError, Recording
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
    recording : Recording or None
        None of a run that nobody records.
    loader : callable
        Rebuilds the user's model for a checkpoint out of what this process has.
    unrecorded : str
        Why nobody records it.
    """

    def __init__(self, recording: Recording | None, loader: Loader, unrecorded: str = "") -> None:
        self._recording = recording
        self._loader = loader
        self._unrecorded = unrecorded
        self._sender: Sender | None = None

    def __repr__(self) -> str:
        return "KernelSource()"

    @property
    def trained_here(self) -> bool:
        """True."""
        return True

    def number(self) -> int:
        """Return the number of the experiment.

        Raises
        ------
        NotRecordedError
            If no master has it.
        """
        assert self._session is not None  # others ask by this number: after the training all of it is there
        return self._recorded().wait().experiment_id

    def ended(self, sender: Sender) -> None:
        """Have the next question wait for what `sender` has not sent yet: the training has ended."""
        self._sender = sender

    @property
    def _session(self) -> Session:  # type: ignore[override]  # what all questions of a source go through
        recording = self._recorded()
        session, sender = recording.session(), self._sender
        if sender is not None:
            if sender.wait_sent(SETTLE_SECONDS):
                _wait_for_end(session, recording.wait().experiment_id)
            self._sender = None
        return session

    def _recorded(self) -> Recording:
        if self._recording is None:
            raise NotRecordedError(self._unrecorded)
        return self._recording

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        """Load a checkpoint into what this process has trained."""
        return self._loader(checkpoint, directory)


def _wait_for_end(session: Session, experiment_id: int) -> None:
    """Wait until the master has drawn its conclusions from the last report."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        if session.call(routes.GET_EXPERIMENT, experiment_id=experiment_id).state.terminal:
            return
        time.sleep(_LOOK_SECONDS)

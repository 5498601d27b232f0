"""The way for the reports of a run in a process of the user's: to the master that has it, once one has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from det_native.errors import AuthenticationError, FencedError, MasterError, MasterUnreachableError, RequestError
from det_native.schema.rest import ReportsAccepted

if TYPE_CHECKING:
    from det_native.client.session import Session


class Record(Protocol):
    """What is needed of ``det_native.kernel_runs.recording.Recording``."""

    def session_of_run(self) -> Session:
        """Return the session for the run's reports; raises MasterError if no master has the run."""

    def bring_contents(self, reports: list[str]) -> None:
        """Make the master have what reports name."""

    def revive(self) -> None:
        """Start the master again if it was killed."""


class RecordedConnection:
    """Records the run, then sends its reports; implements ``report.Connection``.

    Whatever goes wrong, the training goes on, and the reports wait.
    """

    def __init__(self, record: Record, run_id: str) -> None:
        self._record = record
        self._run_id = run_id
        self._process = os.getpid()

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Send reports; see ``MasterConnection.send()``."""
        try:
            session = self._record.session_of_run()  # which waits for the first batch before more is loaded
            from det_harness.worker.connection import MasterConnection

            connection = MasterConnection(session, self._run_id)
            self._record.bring_contents(reports)
            return connection.send(reports, progress, waiting)
        except MasterUnreachableError:
            self._record.revive()
            raise
        except AuthenticationError as error:  # another master in its place, say: nobody has asked for an end
            raise MasterError(str(error)) from error
        except (FencedError, RequestError, MasterError):
            raise
        except Exception as error:
            raise MasterError(f"{type(error).__name__}: {error}") from error

    def best(self) -> float | None:
        """Return None: the validations of this run are all that count."""
        return None


class NoRecord:
    """Where reports go that nobody keeps; implements ``report.Connection``."""

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Take them."""
        return ReportsAccepted(through=0)

    def best(self) -> float | None:
        """Return None."""
        return None

"""The way for the reports of a run in a process of the user's: to the master that has it, once one has."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Protocol

from det_harness.trial import activity
from det_native.errors import AuthenticationError, FencedError, MasterError, MasterUnreachableError, RequestError
from det_native.schema.reports import ReportsAccepted

if TYPE_CHECKING:
    from det_native.client.session import Session


# So often is looked whether the first batch is done; frameworks count batches before they report any.
_LOOK_SECONDS = 0.1


class Record(Protocol):
    """What is needed of ``det_native.kernel_runs.recording.Recording``."""

    begun: Event

    def session_of_run(self) -> Session:
        """Return the session for the run's reports; raises MasterError if no master has the run."""

    def bring_contents(self, reports: list[str]) -> None:
        """Make the master have what reports name."""

    def revive(self) -> None:
        """Start the master again if it was killed."""


class RecordedConnection:
    """Records the run, then sends its reports; implements ``report.Connection``.

    Whatever goes wrong, the training goes on, and the reports wait. Those that are not `sent` stay where they are.
    """

    def __init__(self, record: Record, run_id: str, *, sent: bool = True) -> None:
        self._record, self._run_id, self._sent = record, run_id, sent
        self._steps = activity.steps()

    @property
    def has_begun(self) -> bool:
        """Whether a batch of the training is done: from then on it is a run."""
        return self._record.begun.is_set() or activity.steps() != self._steps

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Send reports; see ``MasterConnection.send()``."""
        if not self._sent:
            return ReportsAccepted(through=0)
        try:
            while not self.has_begun:  # before that, nothing more is loaded either
                self._record.begun.wait(_LOOK_SECONDS)
            session = self._record.session_of_run()
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

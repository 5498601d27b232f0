"""States of experiments, trials, runs and checkpoints, and the words by which they are shown everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class ShownState(StrEnum):
    """A state that is shown by its word ("Stopped"), and is equal to Determined's name for it (CANCELED) too.

    Names are what is stored and sent. Compare with ``==``, or with ``in`` and a list; upper and lower case are one.
    """

    @property
    def word(self) -> str:
        """The one word for it; the front end's are in ``jupyter_ext/src/shared/texts.ts``."""
        return _WORDS.get(self.value, self.value.capitalize())

    def _is_called(self, name: str) -> bool:
        known = {self.value.lower(), self.word.lower()}
        return name.lower() in (known | {"active"} if self.value == "QUEUED" else known)

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return next((state for state in cls if isinstance(value, str) and state._is_called(value)), None)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and self._is_called(str.__str__(other)))

    __hash__ = StrEnum.__hash__

    def __str__(self) -> str:
        return self.word

    def __repr__(self) -> str:
        return repr(self.word)

    def __format__(self, form: str) -> str:
        return format(self.word, form)


_WORDS = {
    "ACTIVE": "Running",
    "STOPPING_CANCELED": "Stopping",
    "STOPPING_COMPLETED": "Finishing",
    "STOPPING_ERROR": "Failing",
    "CANCELED": "Stopped",
    "ERROR": "Failed",
}


class ExperimentState(ShownState):
    """State of an experiment (names as in Determined).

    QUEUED is never stored: so a handle shows one that is ACTIVE, but has not got slots yet.
    """

    QUEUED = "QUEUED"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    STOPPING_COMPLETED = "STOPPING_COMPLETED"
    STOPPING_ERROR = "STOPPING_ERROR"
    CANCELED = "CANCELED"
    COMPLETED = "COMPLETED"
    ERROR = "ERROR"
    DELETED = "DELETED"

    @property
    def terminal(self) -> bool:
        """Whether no further work can happen in this state."""
        return self in {
            ExperimentState.CANCELED,
            ExperimentState.COMPLETED,
            ExperimentState.ERROR,
            ExperimentState.DELETED,
        }


class TrialState(ShownState):
    """State of a trial. QUEUED and RUNNING are both "active"; they differ by having a run at the moment."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    CANCELED = "CANCELED"
    COMPLETED = "COMPLETED"
    ERROR = "ERROR"

    @property
    def terminal(self) -> bool:
        """Whether the trial has ended."""
        return self in {TrialState.CANCELED, TrialState.COMPLETED, TrialState.ERROR}


class RunState(StrEnum):
    """State of one attempt at a trial."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


class CheckpointState(StrEnum):
    """State of a checkpoint. A row is only made once its manifest is complete; deletion keeps the row."""

    COMPLETED = "COMPLETED"
    DELETED = "DELETED"


class MetricKind(StrEnum):
    """What a metrics row measures."""

    TRAINING = "training"
    VALIDATION = "validation"


class ExitReason(StrEnum):
    """Why an attempt ended, as its harness says; a process that just vanishes says nothing.

    PEER_FAILED is the end of a process that could not go on because another one of the same trial had failed. With
    INPUTS_DIFFER nothing was trained: the program gave other inputs than the notebook, and there is a wider one.
    """

    COMPLETED = "COMPLETED"
    STOPPED = "STOPPED"
    USER_ERROR = "USER_ERROR"
    INVALID_HYPERPARAMETERS = "INVALID_HYPERPARAMETERS"
    HARNESS_ERROR = "HARNESS_ERROR"
    PEER_FAILED = "PEER_FAILED"
    INPUTS_DIFFER = "INPUTS_DIFFER"

    @property
    def failed(self) -> bool:
        """Whether something went wrong."""
        return self not in {ExitReason.COMPLETED, ExitReason.STOPPED}

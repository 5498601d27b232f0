"""States of experiments, trials, runs and checkpoints, and which may follow which."""

from __future__ import annotations

from enum import StrEnum


class ExperimentState(StrEnum):
    """State of an experiment (names as in Determined)."""

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


class TrialState(StrEnum):
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

    PEER_FAILED is the end of a process that could not go on because another one of the same trial had failed.
    """

    COMPLETED = "COMPLETED"
    STOPPED = "STOPPED"
    USER_ERROR = "USER_ERROR"
    INVALID_HYPERPARAMETERS = "INVALID_HYPERPARAMETERS"
    HARNESS_ERROR = "HARNESS_ERROR"
    PEER_FAILED = "PEER_FAILED"

    @property
    def failed(self) -> bool:
        """Whether something went wrong."""
        return self not in {ExitReason.COMPLETED, ExitReason.STOPPED}

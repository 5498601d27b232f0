"""States of experiments, trials, runs and checkpoints.

States of experiments and trials are shown to users by a word ("Stopped"), which is their value. In REST answers, in the
database and in files they have Determined's names (CANCELED), which are the names of the members.
"""

from __future__ import annotations

from enum import StrEnum, nonmember
from typing import Any, Self, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class ShownState(StrEnum):
    """A state whose value is the word that is shown; the front end's are in ``jupyter_ext/src/shared/texts.ts``.

    It compares, hashes and prints as that word. ``ExperimentState("CANCELED")`` and ``ExperimentState("stopped")``
    find a state too.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        name = value.lower() if isinstance(value, str) else None
        return next((state for state in cls if name in (state.name.lower(), state.value.lower())), None)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        # Readers of other versions (workers, the front end, saved notebooks) know the names, which never change.
        by_name = core_schema.plain_serializer_function_ser_schema(
            _name, return_schema=core_schema.str_schema(), when_used="json"
        )
        return cast("CoreSchema", {**handler(source), "serialization": by_name})

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler(cast("CoreSchema", {**schema, "serialization": None}))
        handler.resolve_ref_schema(described)["enum"] = [state.name for state in cls]
        return described

    def __repr__(self) -> str:
        return repr(self.value)


def _name(state: ShownState) -> str:
    return state.name


class ExperimentState(ShownState):
    """State of an experiment (names as in Determined).

    QUEUED is never stored: so a handle shows one that is ACTIVE, but has not got slots yet.
    """

    QUEUED = "Queued"
    ACTIVE = "Running"
    PAUSED = "Paused"
    STOPPING_CANCELED = "Stopping"
    STOPPING_COMPLETED = "Finishing"
    STOPPING_ERROR = "Failing"
    CANCELED = "Stopped"
    COMPLETED = "Completed"
    ERROR = "Failed"
    DELETED = "Deleted"
    #: Determined has both words.
    RUNNING = "Running"

    # States of Determined that are none here: code that compares with them goes on.
    DELETE_FAILED = nonmember("DELETE_FAILED")
    DELETING = nonmember("DELETING")
    PULLING = nonmember("PULLING")
    STARTING = nonmember("STARTING")
    STOPPING_KILLED = nonmember("STOPPING_KILLED")

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

    QUEUED = "Queued"
    RUNNING = "Running"
    CANCELED = "Stopped"
    COMPLETED = "Completed"
    ERROR = "Failed"
    #: Determined has both words.
    ACTIVE = "Running"

    # States of Determined that no trial has here.
    PAUSED = nonmember("PAUSED")
    PULLING = nonmember("PULLING")
    STARTING = nonmember("STARTING")
    STOPPING_CANCELED = nonmember("STOPPING_CANCELED")
    STOPPING_COMPLETED = nonmember("STOPPING_COMPLETED")
    STOPPING_ERROR = nonmember("STOPPING_ERROR")
    STOPPING_KILLED = nonmember("STOPPING_KILLED")

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

    # States of Determined that no checkpoint has here.
    ACTIVE = nonmember("ACTIVE")
    ERROR = nonmember("ERROR")
    PARTIALLY_DELETED = nonmember("PARTIALLY_DELETED")


class MetricKind(StrEnum):
    """What a metrics row measures; what the user's code logs by itself is a kind of its own."""

    TRAINING = "training"
    VALIDATION = "validation"
    LOGGED = "logged"


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

    @classmethod
    def _missing_(cls, value: object) -> ExitReason | None:
        """Return the reason of today for one of earlier versions."""
        return cls.USER_ERROR if value == "INPUTS_DIFFER" else None

    @property
    def failed(self) -> bool:
        """Whether something went wrong."""
        return self not in {ExitReason.COMPLETED, ExitReason.STOPPED}

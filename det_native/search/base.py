"""What searchers are told and what they answer: pure state machines over the trials of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Started:
    """The experiment begins. Always the first event, once."""


@dataclass(frozen=True)
class TrialCompleted:
    """The trial made for `request` has trained as long as it was asked to, and has validated.

    `metric` is the searcher's metric at its last validation, None if it ended without one. `units` is how long it was
    asked to train, None where that is the whole length. `over` tells that the trial has ended by itself: it cannot
    train on, and keeps this metric. Where the searcher compares by several metrics, `metrics` has them all.
    """

    request: int
    metric: float | None
    units: int | None = None
    over: bool = False
    metrics: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class TrialValidated:
    """The trial made for `request` has validated while it trains, `units` of its length being done.

    Told only to searchers that watch validations; of one trial in order of `units`.
    """

    request: int
    units: int
    metric: float | None


@dataclass(frozen=True)
class TrialFailed:
    """The trial made for `request` has used up its restarts."""

    request: int


@dataclass(frozen=True)
class TrialRefused:
    """The trial made for `request` has ended: its code says that its hyperparameters are invalid. No failure."""

    request: int


Event = Started | TrialCompleted | TrialFailed | TrialRefused | TrialValidated


#: Searches that draw trials at random make another one for each that is refused, at most as many as they have trials
#: times this: where nothing fits, they come to an end.
REPLACED_PER_TRIAL = 10


@dataclass(frozen=True)
class CreateTrial:
    """Make a trial. Requests count from 0 and name the trial in later events.

    `units` is how long it trains first, in the unit of the searcher's length; None for the whole length. With a
    `parent`, another request, it begins with the weights of that one's last checkpoint.
    """

    request: int
    hparams: dict[str, Any]
    seed: int
    units: int | None = None
    parent: int | None = None


@dataclass(frozen=True)
class TrainTo:
    """Train the trial of `request` on, until `units` are done in total, and validate it."""

    request: int
    units: int


@dataclass(frozen=True)
class Close:
    """The trial of `request` is not trained on: it has ended in order."""

    request: int


@dataclass(frozen=True)
class Stop:
    """Have the trial of `request` end early, as completed; it is told as completed once it has."""

    request: int


@dataclass(frozen=True)
class Shutdown:
    """The experiment is over; `failed` if it has nothing to show."""

    failed: bool


Action = CreateTrial | TrainTo | Close | Stop | Shutdown


class Searcher(Protocol):
    """Decides which trials are run.

    The same events give the same actions, also when they are told to a searcher made from a snapshot in between. An
    event told twice, or after the shutdown, is answered with no action.
    """

    @property
    def watches_validations(self) -> bool:
        """Whether it is to be told of validations of trials that train on."""

    @property
    def last_stage(self) -> float:
        """Share of all training that the last stage of one trial is, which may run alone; 0 without stages."""

    def has_stopped(self, request: int) -> bool:
        """Return whether it has had the trial of a request end early."""

    def handle(self, event: Event) -> list[Action]:
        """Take one event; return what is to be done now."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""

    def progress(self, completed_fraction: Mapping[int, float]) -> float:
        """Return how much of the experiment is done, 0 to 1.

        Parameters
        ----------
        completed_fraction : mapping
            For requests whose trials run, the fraction of their length that is done; what is not in it counts as 0,
            trials that ended as 1.
        """

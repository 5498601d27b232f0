"""Searchers: which trials an experiment runs, as pure state machines."""

from det_native.search.base import (
    Action,
    Close,
    CreateTrial,
    Event,
    Searcher,
    Shutdown,
    Started,
    Stop,
    TrainTo,
    TrialCompleted,
    TrialFailed,
    TrialRefused,
    TrialValidated,
)
from det_native.search.make import make_searcher

__all__ = [
    "Action",
    "Close",
    "CreateTrial",
    "Event",
    "Searcher",
    "Shutdown",
    "Started",
    "Stop",
    "TrainTo",
    "TrialCompleted",
    "TrialFailed",
    "TrialRefused",
    "TrialValidated",
    "make_searcher",
]

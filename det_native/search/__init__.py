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
    "TrialValidated",
    "make_searcher",
]

"""Searchers: which trials an experiment runs, as pure state machines."""

from det_native.master.search.base import (
    Action,
    CreateTrial,
    Event,
    Searcher,
    Shutdown,
    Started,
    TrialCompleted,
    TrialFailed,
)
from det_native.master.search.make import make_searcher

__all__ = [
    "Action",
    "CreateTrial",
    "Event",
    "Searcher",
    "Shutdown",
    "Started",
    "TrialCompleted",
    "TrialFailed",
    "make_searcher",
]

"""What happens in this process once somebody has seen that an experiment has ended: in a wait, or in a live view."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from det_native.client import rendering
from det_native.errors import DetError


class Result(Protocol):
    """What a training that this process has submitted makes of its objects."""

    experiment: Any
    #: What shows in cells what the training prints, once there is one.
    outputs: rendering.Outputs | None

    def bring(self) -> None:
        """Put it in place; does nothing the second time."""

    def bring_large(self) -> bool:
        """Put in place what exceeded the size that comes by itself; return whether there was anything."""

    def is_to_come_for(self, models: Sequence[Any]) -> bool:
        """Whether one of these models is to get it."""

    def bring_files(self) -> None:
        """Put its files in place; does nothing the second time."""

    def give_up(self, failure: DetError) -> None:
        """Note that it never comes, and say in the error what there is."""


# Held by the handle of the call, and found by any other handle of the experiment.
_results: weakref.WeakValueDictionary[tuple[str, int], Result] = weakref.WeakValueDictionary()


def keep(experiment: Any, result: Result) -> None:
    """Have those who wait for an experiment bring its result."""
    experiment._result = result
    _results[experiment.source.url, experiment.id] = result


def pass_on(experiment: Any, handle: Any) -> Any:
    """Have another handle of an experiment hold its result; return it."""
    result = result_of(experiment)
    if result is not None:
        result.experiment = handle
        keep(handle, result)
    return handle


def result_of(experiment: Any) -> Result | None:
    """Return what is to come of an experiment; None where this process has submitted nothing."""
    result: Result | None = getattr(experiment, "_result", None)
    url = experiment.source.url
    return result or (_results.get((url, experiment.id)) if url else None)


def to_come_for(models: Sequence[Any]) -> list[Any]:
    """Return the experiments whose results these models are to get, in the order in which they were submitted."""
    return [result.experiment for result in list(_results.values()) if result.is_to_come_for(models)]

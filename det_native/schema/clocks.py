"""When a trial had done how much: what curves over batches need to be drawn over time and epochs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from det_native.schema.bodies import Answer

Finite = Annotated[float, Field(allow_inf_nan=False)]


class TrialClock(Answer):
    """When the master heard of which batch of a trial, and after which batches its epochs ended.

    Between two of its points a trial has gone on evenly as far as is known. What an earlier version has trained has no
    points, and frameworks without a history of their own have no ends of epochs.

    Attributes
    ----------
    started : float or None
        When its first run started, in seconds since 1970.
    batch, time : list
        Batches done, ascending, and when the master had their report, in seconds since 1970.
    epoch_batch, epoch : list
        Batches done at the end of epochs, and how many epochs those are.
    """

    trial_id: int
    started: Finite | None = None
    batch: list[int] = Field(default_factory=list)
    time: list[Finite] = Field(default_factory=list)
    epoch_batch: list[int] = Field(default_factory=list)
    epoch: list[int] = Field(default_factory=list)


__all__ = ["TrialClock"]

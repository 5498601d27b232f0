"""The experiment of an earlier training call, in a program that runs again: its numbers are known."""

from __future__ import annotations

from typing import Any

from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_native.past_history import PastHistory


class PastExperiment(NullHandle):
    """Has the id and the history of an experiment that has ended; all else of it is a null handle's.

    Parameters
    ----------
    id : int
    history : PastHistory
    place : str
        Where the call was made.
    made_up : MadeUpValues
    parts : int
        Into how many values it is unpacked.
    """

    def __init__(self, id: int, history: PastHistory, place: str, made_up: MadeUpValues, parts: int = 1) -> None:
        super().__init__(place, made_up, parts=parts)
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "history", dict(history.metrics))
        object.__setattr__(self, "epoch", list(history.epoch))
        object.__setattr__(self, "params", dict(history.params))

    def __repr__(self) -> str:
        return f"<experiment {self.id}, which has ended>"

    def wait(self, *arguments: Any, **keywords: Any) -> PastExperiment:
        """Return it: it has ended."""
        return self

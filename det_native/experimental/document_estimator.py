"""What the text of a call of ``context.train_and_evaluate()`` says about the configuration: nothing but defaults."""

from __future__ import annotations

from typing import Any

from det_native.capture.document_calls import FoundCall
from det_native.capture.document_values import Unknown


class EstimatorCallText:
    """The arguments of a call that say something about the configuration; see ``EstimatorCall``."""

    def __init__(self, call: FoundCall) -> None:
        self.complete = call.complete

    def unknown(self, path: str) -> str | Unknown | None:
        """Return why the call does not tell a field of the configuration; None if it does."""
        if path == "searcher.metric":
            return None
        return "the TrainSpec tells it" if path == "searcher.max_length" else "the data tell it"

    def fills(self) -> dict[str, Any]:
        """Return what the call says, by dotted path."""
        return {}

    def defaults(self) -> dict[str, Any]:
        """Return what holds if neither the configuration nor the call says anything."""
        return {"searcher.metric": "loss"}

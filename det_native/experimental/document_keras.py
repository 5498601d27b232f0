"""What the text of a call of ``model.fit()`` says about the configuration."""

from __future__ import annotations

from typing import Any

from det_native.capture.document_calls import FoundCall
from det_native.capture.document_values import Unknown

_FIT = (
    *("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle"),
    *("class_weight", "sample_weight", "initial_epoch", "steps_per_epoch"),
)
_FIT_GENERATOR = ("x", "steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data")


class FitText:
    """The arguments of a call that say something about the configuration; see ``FitCall``."""

    def __init__(self, call: FoundCall) -> None:
        attribute = getattr(call.node.func, "attr", "fit")
        names = _FIT_GENERATOR if attribute == "fit_generator" else _FIT
        self.given = dict(zip(names, call.positional, strict=False)) | dict(call.keywords)
        self.complete = call.complete
        self.epochs = self.given.get("epochs", 1)
        self.initial = self.given.get("initial_epoch", 0)
        self.steps = self.given.get("steps_per_epoch")
        self.batch_size = self.given.get("batch_size")
        self.validated = self.given.get("validation_data") is not None or bool(self.given.get("validation_split"))
        # With y given, x is no Dataset or generator, which make their batches themselves.
        self.indexed = self.given.get("y") is not None

    def unknown(self, path: str) -> str | Unknown | None:
        """Return why the call does not tell a field of the configuration; None if it does."""
        if not self.complete:
            return "the arguments of fit() are given by * or **"
        if path == "searcher.max_length":
            return next((one for one in (self.epochs, self.initial) if isinstance(one, Unknown)), None)
        if path == "searcher.metric":
            return None
        if isinstance(self.batch_size, Unknown):
            return self.batch_size
        sized = isinstance(self.batch_size, int) and self.indexed
        if path == "hyperparameters.global_batch_size":
            return None if sized else "the data tell the batch size"
        if isinstance(self.steps, Unknown):
            return self.steps
        return None if sized and isinstance(self.steps, int) else "the length of the data tells it"

    def fills(self) -> dict[str, Any]:
        """Return what the call says, by dotted path."""
        fills: dict[str, Any] = {}
        if self.given.keys() & {"epochs", "initial_epoch"} and not self.unknown("searcher.max_length"):
            fills["searcher.max_length"] = {"epochs": self.epochs - self.initial}
        if isinstance(self.batch_size, int) and self.indexed:
            fills["hyperparameters.global_batch_size"] = self.batch_size
            if isinstance(self.steps, int):
                fills["records_per_epoch"] = self.steps * self.batch_size
        return fills

    def defaults(self) -> dict[str, Any]:
        """Return what holds if neither the configuration nor the call says anything."""
        return {"searcher.metric": "val_loss" if self.validated else "loss", "searcher.max_length": {"epochs": 1}}

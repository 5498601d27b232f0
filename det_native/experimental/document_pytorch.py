"""What the text of a call of ``context.fit()`` or ``context.train()`` says about the configuration."""

from __future__ import annotations

from typing import Any

from det_native.capture.document_calls import FoundCall
from det_native.capture.document_values import Unknown

_FIT = ("train_loader", "validation_loader", "train_batch", "evaluate_batch", "epochs", "callbacks")
_TRAIN = ("train_loader", "epochs")


class ContextCallText:
    """The arguments of a call that say something about the configuration; see ``TorchCall``."""

    def __init__(self, call: FoundCall) -> None:
        names = _FIT if call.kind == "fit" else _TRAIN
        self.given = dict(zip(names, call.positional, strict=False)) | dict(call.keywords)
        self.complete = call.complete
        self.kind = call.kind
        self.epochs = self.given.get("epochs")

    def unknown(self, path: str) -> str | Unknown | None:
        """Return why the call does not tell a field of the configuration; None if it does."""
        if not self.complete:
            return f"the arguments of {self.kind}() are given by * or **"
        if path == "searcher.max_length":
            return self.epochs if isinstance(self.epochs, Unknown) else None
        return None if path == "searcher.metric" else "the loader tells it"

    def fills(self) -> dict[str, Any]:
        """Return what the call says, by dotted path."""
        known = self.epochs is not None and not isinstance(self.epochs, Unknown)
        return {"searcher.max_length": {"epochs": self.epochs}} if known else {}

    def defaults(self) -> dict[str, Any]:
        """Return what holds if neither the configuration nor the call says anything."""
        metric = "val_loss" if self.given.get("evaluate_batch") is not None else "loss"
        return {
            "searcher.metric": metric,
            "searcher.max_length": {"epochs": 1},
            "min_validation_period": {"epochs": 1},
        }

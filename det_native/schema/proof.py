"""What a training call was given in the notebook, so that a worker can tell whether it was given the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

#: Of how inputs are read; what another version has noted would look like other inputs.
VERSION = 11
#: How a row of the report begins that names an input which differed, and which the training has taken as it was.
DIFFERS = "differs"

# What an input is to the training; variables are those that functions read.
Role = Literal["data", "weights", "layers", "optimizer", "loss", "metrics", "loader", "code", "callback", "variable"]


@dataclass(frozen=True)
class Input:
    """An input of a training call.

    Attributes
    ----------
    role : str
        What it is to the training; this decides what a difference means.
    assign : callable or None
        Gives the call another value instead; None where only what is in it can be changed.
    """

    value: Any
    role: Role = "data"
    assign: Callable[[Any], object] | None = None


class ProofBlob(BaseModel):
    """A blob that has what is known of the inputs, or the inputs themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    size: int


class CallProof(BaseModel):
    """The inputs of a training call in the notebook, which had these hyperparameters and this trial's seed.

    Attributes
    ----------
    table : ProofBlob or None
        What is known of each object, see ``det_native.heap.compare``; None if nothing is.
    inputs : ProofBlob or None
        The objects themselves, for a worker that has made others; None if they are too large.
    texts : ProofBlob or None
        The notebook's texts, paths and moments, see ``det_native.heap.slots``: they are put in place of the worker's.
    sentences : tuple of str
        What cannot be compared, and why.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = VERSION
    hparams: dict[str, Any] = Field(default_factory=dict)
    seed: int
    table: ProofBlob | None = None
    inputs: ProofBlob | None = None
    texts: ProofBlob | None = None
    sentences: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, content: Any) -> Any:
        if isinstance(content, dict) and content.get("version", 1 if "facts" in content else VERSION) != VERSION:
            kept = {name: content[name] for name in ("hparams", "seed") if name in content}
            reason = "The inputs are not compared: another version of det_native has noted them."
            return {**kept, "sentences": (reason,)}
        return content

    @property
    def values(self) -> tuple[ProofBlob, ...]:
        """The blobs that belong to it."""
        return tuple(blob for blob in (self.table, self.inputs, self.texts) if blob is not None)

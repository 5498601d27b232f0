"""What a training call was given in the notebook, so that a worker can tell whether it was given the same."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

#: Of how inputs are read; what another version has noted would look like other inputs.
VERSION = 7

#: Stands for a text that must not be shown, nor sent.
SECRET = "a text that looks like a secret"

# What an input is to the training: what it is given (data, weights, layers, optimizer, loss, metrics, loader),
# functions that the call names (code) or that these call (helper), callbacks, and variables that functions read.
# Variables that the functions change themselves are state.
Role = Literal[
    "data",
    "weights",
    "layers",
    "optimizer",
    "loss",
    "metrics",
    "loader",
    "code",
    "helper",
    "callback",
    "variable",
    "state",
]
# A plain value; an array, a table or the like; a function's source; a class, keys or a length; an object of a library.
LeafKind = Literal["value", "data", "code", "structure", "library"]


class LeafValue(BaseModel):
    """The blob that has the value of a leaf; a ``state`` is taken by an object of the same build."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    codec: Literal["npy", "objects", "parquet", "safetensors", "state", "weights"]
    sha256: str
    size: int


class InputLeaf(BaseModel):
    """What is known of a part of an input.

    Attributes
    ----------
    path : str
        Where it is in the input: ``.weights[0]``; empty for all of it.
    kind : str
    text : str
        For a person: ``(1437, 64) float64, mean 4.884``.
    exact : str
        Fingerprint of all content.
    loose : str
        Fingerprint of all content but for floating-point numbers, of which it has shapes and types.
    masked : str
        Fingerprint of all that another process has, too; empty where that is all of it.
    blocks : str
        What is known of floating-point numbers, block by block, so that last digits are told from other data.
    partly : str
        What of it was read, where that is not all; empty if it is.
    not_compared : str
        What of it cannot be read, in a few words; empty if all can.
    literal : str
        The value as a literal of Python; empty if it has none.
    value : LeafValue or None
        The blob with the value, where it travels.
    before_init : bool
        Whether it was there when ``init()`` was called: then every trial has it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    path: str = ""
    kind: LeafKind
    text: str
    exact: str
    loose: str
    masked: str = ""
    blocks: str = ""
    partly: str = ""
    not_compared: str = ""
    literal: str = ""
    value: LeafValue | None = None
    before_init: bool = False


class InputFact(BaseModel):
    """What is known of one input of a call.

    Attributes
    ----------
    part : str
        Which input: ``x``, ``the model's weights``.
    name : str
        The notebook's variable that holds it, empty if none does.
    role : str
    leaves : tuple of InputLeaf
    not_compared : str
        Why nothing of it can be compared, a sentence; empty if something can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: str
    name: str = ""
    role: Role = "data"
    leaves: tuple[InputLeaf, ...] = ()
    not_compared: str = ""


class ClockValue(BaseModel):
    """A value that the notebook has made from a clock or from entropy: where it is, what it is, and how it is written.

    `folder` is the folder in the notebook's that it names, or in which it names a file; empty if there is none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    kind: Literal["str", "path", "int", "date", "datetime", "uuid"]
    text: str
    folder: str = ""


def _is_older(content: dict[str, Any]) -> bool:
    facts = content.get("facts") or ()
    made_here = "version" not in content and all(isinstance(fact, InputFact) for fact in facts)
    return not made_here and content.get("version", 1) != VERSION


class CallProof(BaseModel):
    """The inputs of a training call in the notebook, which had these hyperparameters and this trial's seed.

    `clock_values` are put in place of those that a worker has made; `host` is the name of the notebook's machine, which
    may be a part of them. `not_compared` says why nothing is known of the inputs, empty if something is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = VERSION
    facts: tuple[InputFact, ...] = ()
    hparams: dict[str, Any] = Field(default_factory=dict)
    seed: int
    clock_values: tuple[ClockValue, ...] = ()
    host: str = ""
    not_compared: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, content: Any) -> Any:
        if isinstance(content, dict) and _is_older(content):
            kept = {name: content[name] for name in ("hparams", "seed") if name in content}
            reason = "The inputs are not compared: another version of det_native has noted them."
            return {**kept, "not_compared": reason}
        return content

    @property
    def values(self) -> tuple[LeafValue, ...]:
        """The blobs with values of inputs."""
        return tuple(leaf.value for fact in self.facts for leaf in fact.leaves if leaf.value is not None)

    @property
    def sentences(self) -> list[str]:
        """What cannot be compared, and why."""
        sentences = [self.not_compared]
        for fact in self.facts:
            sentences.append(fact.not_compared)
            for leaf in fact.leaves:
                part = f"{fact.part}{leaf.path}"
                if leaf.partly:
                    sentences.append(f"Of {part}, only {leaf.partly} are compared with what reaches the training.")
                if leaf.not_compared:
                    sentences.append(f"{part} is not compared on the worker: {leaf.not_compared} cannot be read.")
        return [sentence for sentence in dict.fromkeys(sentences) if sentence]

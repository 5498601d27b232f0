"""What a training call was given in the notebook, so that a worker can tell whether it was given the same."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

#: Of how inputs are read; what another version has noted would look like other inputs.
VERSION = 2


class InputFact(BaseModel):
    """What is known of one input of a call.

    Attributes
    ----------
    part : str
        Which input: ``x``, ``the model's weights``.
    name : str
        The notebook's variable that holds it, empty if none does.
    text : str
        What a person is told: ``array (1437, 64) float64, mean 4.884``.
    exact : str
        Fingerprint of all content.
    code : str
        Fingerprint of the compiled code in it, after the version of Python and a colon; empty if there is none.
    loose : str
        Fingerprint of all content but for floating-point numbers, of which it has shapes and types.
    blocks : str
        What is known of those numbers, block by block, so that last digits are told from other data.
    partly : str
        What of it was read, where that is not all; empty if it is.
    untold : str
        Why it cannot be compared, a sentence; empty if it can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    part: str
    name: str = ""
    text: str
    exact: str
    code: str = ""
    loose: str
    blocks: str = ""
    partly: str = ""
    untold: str = ""


def _is_older(content: dict[str, Any]) -> bool:
    facts = content.get("facts") or ()
    made_here = "version" not in content and all(isinstance(fact, InputFact) for fact in facts)
    return not made_here and content.get("version", 1) != VERSION


class CallProof(BaseModel):
    """The inputs of a training call in the notebook, which had these hyperparameters and this trial's seed.

    `untold` says why nothing is known of them, empty if something is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = VERSION
    facts: tuple[InputFact, ...] = ()
    hparams: dict[str, Any] = Field(default_factory=dict)
    seed: int
    untold: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, content: Any) -> Any:
        if isinstance(content, dict) and _is_older(content):
            kept = {name: content[name] for name in ("hparams", "seed") if name in content}
            return {**kept, "untold": "The inputs are not compared: another version of det_native has noted them."}
        return content

    @property
    def sentences(self) -> list[str]:
        """What cannot be compared, and why."""
        partly = [
            f"Of {fact.part}, only {fact.partly} are compared with what reaches the training." if fact.partly else ""
            for fact in self.facts
        ]
        return [one for one in (self.untold, *(fact.untold for fact in self.facts), *partly) if one]

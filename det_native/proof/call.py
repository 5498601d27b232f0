"""The inputs of a training call as facts, and how those of two processes compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.proof.blocks import agree
from det_native.proof.content import content_of
from det_native.proof.lookups import Part
from det_native.schema.proof import CallProof, InputFact


def facts_of(parts: Mapping[str, Any], name_of: Callable[[Any], str] = lambda value: "") -> tuple[InputFact, ...]:
    """Return what is known of the inputs of a call.

    Parameters
    ----------
    parts : mapping of str to value
        The inputs, by what they are called in messages.
    name_of : callable
        Gives the variable that holds a value, or an empty text.
    """
    facts = []
    for part, value in parts.items():
        try:
            facts.append(_fact(part, getattr(part, "variable", "") or name_of(value), value))
        except Exception as error:  # noqa: BLE001 (of a value that cannot be read, a library's or a user's code)
            told = f"{part} is not compared with the notebook's: {in_words(error)}"
            facts.append(InputFact(part=part, text=type(value).__name__, exact="", loose="", untold=told))
    return tuple(facts)


def in_words(error: Exception) -> str:
    """Return an exception as the end of a sentence."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300].rstrip(". ") + "."


def _fact(part: str, name: str, value: Any) -> InputFact:
    found = content_of(value, of_process=isinstance(part, Part))
    return InputFact(
        part=part,
        name=name,
        text=found.text,
        exact=found.exact,
        code=found.code,
        loose=found.loose,
        blocks=found.blocks,
        partly=found.partly,
    )


@dataclass(frozen=True)
class Difference:
    """An input that is another one here; `rounding` says that only last digits differ, as far as is seen.

    `untold` says why the two could not be compared; empty if they were.
    """

    wanted: InputFact
    found: InputFact | None
    rounding: bool
    untold: str = ""


def differences(proof: CallProof, parts: Mapping[str, Any]) -> list[Difference]:
    """Return in what the inputs here differ from those in the notebook, in the notebook's order.

    An input that was not there, or is not here, is a difference of the call itself, which its own checks find.
    """
    wanted = {fact.part: fact for fact in proof.facts}
    found = {fact.part: fact for fact in facts_of({part: value for part, value in parts.items() if part in wanted})}
    return [
        Difference(fact, found[part], _is_rounding(fact, found[part]), fact.untold or found[part].untold)
        for part, fact in wanted.items()
        if part in found and _differs(fact, found[part])
    ]


def _differs(wanted: InputFact, found: InputFact) -> bool:
    if wanted.exact != found.exact or wanted.untold:
        return True
    # Another version of Python makes other code of the same lines.
    (version, code), (version_here, code_here) = (one.code.partition(":")[::2] for one in (wanted, found))
    return version == version_here and code != code_here


def _is_rounding(one: InputFact, other: InputFact) -> bool:
    """Whether two facts differ in no more than what another processor or number of threads changes."""
    return one.loose == other.loose and one.exact != other.exact and agree(one.blocks, other.blocks)

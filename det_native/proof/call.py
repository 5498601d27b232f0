"""The inputs of a training call as facts, and how those of two processes compare."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.proof.blocks import agree
from det_native.proof.inputs import Input, as_inputs
from det_native.proof.leaves import Leaf, leaves_of
from det_native.schema.proof import CallProof, InputFact, InputLeaf, LeafKind, Role

# What differs certainly, and with it the training.
_DECISIVE: frozenset[Role] = frozenset(
    {"data", "weights", "layers", "optimizer", "loss", "metrics", "loader", "code"},
)
_DATA_READ: frozenset[Role] = frozenset({"variable", "helper"})
# Variables: which of them are read follows from the functions, which are compared.
_PASSING: frozenset[Role] = frozenset({"variable", "state"})
_TEXT_LENGTH = 160


class Severity(enum.Enum):
    """What a difference means.

    ``ROUNDING``: only last digits differ. ``PLAIN``: the notebook's value travels along and takes the other one's
    place. ``DECISIVE``: another training. ``MINOR``: worth a row of the report. ``NOT_COMPARED``: it cannot be read.
    """

    ROUNDING = "rounding"
    PLAIN = "plain"
    DECISIVE = "decisive"
    MINOR = "minor"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Difference:
    """A part of an input that differs here from the notebook's.

    Attributes
    ----------
    fact : InputFact
        The input in the notebook.
    there : InputLeaf or None
        The part in the notebook; None where it has no such part.
    here : Leaf or None
        The part in this process; None where it has no such part.
    severity : Severity
    """

    fact: InputFact
    there: InputLeaf | None
    here: Leaf | None
    severity: Severity

    @property
    def path(self) -> str:
        """Where the part is in the input."""
        part = self.there or self.here
        return part.path if part is not None else ""


def facts_of(
    parts: Mapping[str, Any],
    name_of: Callable[[Any], str] = lambda value: "",
    *,
    note: Callable[[InputFact, Leaf, InputLeaf], InputLeaf] = lambda fact, leaf, noted: noted,
    skipped: frozenset[int] = frozenset(),
) -> tuple[InputFact, ...]:
    """Return what is known of the inputs of a call.

    Parameters
    ----------
    parts : mapping of str to Input or value
        The inputs, by what they are called in messages.
    name_of : callable
        Gives the variable that holds a value, or an empty text.
    note : callable
        Adds to what is noted of a leaf; given its input, the leaf and what is noted of it.
    skipped : frozenset of int
        Identities of objects that are compared by themselves.
    """
    facts = []
    for part, given in as_inputs(parts).items():
        name = given.variable or name_of(given.value)
        fact = InputFact(part=part, name=name, role=given.role)
        try:
            leaves = tuple(note(fact, leaf, _noted(leaf)) for leaf in _leaves(given, skipped))
            facts.append(fact.model_copy(update={"leaves": leaves}))
        except Exception as error:  # noqa: BLE001 (of a value that cannot be read, a library's or a user's code)
            reason = f"{part} is not compared with the notebook's: {in_words(error)}"
            facts.append(fact.model_copy(update={"not_compared": reason}))
    return tuple(facts)


def in_words(error: Exception) -> str:
    """Return an exception as the end of a sentence."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300].rstrip(". ") + "."


def differences(proof: CallProof, parts: Mapping[str, Any], skipped: frozenset[int] = frozenset()) -> list[Difference]:
    """Return in what the inputs here differ from those in the notebook, in the notebook's order."""
    here = as_inputs(parts)
    found: list[Difference] = []
    for fact in proof.facts:
        given = here.get(fact.part)
        if fact.not_compared:
            continue
        if given is None:
            if fact.leaves and fact.role not in _PASSING:
                found.append(Difference(fact, fact.leaves[0], None, _severity(fact.role, fact.leaves[0].kind)))
            continue
        try:
            leaves = _leaves(given, skipped)
        except Exception:  # noqa: BLE001 (of a value that cannot be read, a library's or a user's code)
            found.append(Difference(fact, next(iter(fact.leaves), None), None, Severity.NOT_COMPARED))
            continue
        found += _differences_of(fact, leaves)
    known = {fact.part for fact in proof.facts}
    for part, given in here.items():
        if proof.facts and given.role == "data" and part not in known:
            leaves = _leaves(given, skipped)
            fact = InputFact(part=part, name=given.variable, role=given.role)
            found.append(Difference(fact, None, leaves[0], _severity(given.role, leaves[0].kind)))
    return found


def _leaves(given: Input, skipped: frozenset[int]) -> list[Leaf]:
    return leaves_of(
        given.value,
        put=given.assign,
        whole=given.role == "weights",
        skipped=skipped - {id(given.value)},
    )


def _noted(leaf: Leaf) -> InputLeaf:
    content = leaf.content
    return InputLeaf(
        path=leaf.path,
        kind=leaf.kind,
        text=content.text[:_TEXT_LENGTH],
        exact=content.exact,
        loose=content.loose,
        masked=leaf.masked,
        blocks=content.blocks,
        partly=content.partly,
        not_compared=content.not_compared,
        literal=leaf.literal,
    )


def _differences_of(fact: InputFact, leaves: list[Leaf]) -> list[Difference]:
    here = {leaf.path: leaf for leaf in leaves}
    there = {leaf.path: leaf for leaf in fact.leaves}
    found = []
    for path, wanted in there.items():
        leaf = here.get(path)
        if leaf is None:
            found.append(Difference(fact, wanted, None, _severity(fact.role, wanted.kind)))
        elif wanted.not_compared or leaf.content.not_compared:
            found.append(Difference(fact, wanted, leaf, Severity.NOT_COMPARED))
        elif wanted.kind == leaf.kind == "code" and not (wanted.exact and leaf.content.exact):
            if wanted.loose != leaf.content.loose:  # of one of them the source is unknown
                found.append(Difference(fact, wanted, leaf, _severity(fact.role, wanted.kind)))
        elif wanted.kind != leaf.kind or wanted.exact != leaf.content.exact:
            severity = _severity_of(fact.role, wanted, leaf)
            if severity is not None:
                found.append(Difference(fact, wanted, leaf, severity))
    # Parts that only this process has follow from one that differs: another length, other keys.
    if not found:
        found = [
            Difference(fact, None, leaf, _severity(fact.role, leaf.kind)) for leaf in leaves if leaf.path not in there
        ]
    return found


def _severity_of(role: Role, there: InputLeaf, here: Leaf) -> Severity | None:
    """Return what it means that a part differs; None if each process is right to have its own."""
    if (there.masked or there.exact) == (here.masked or here.content.exact) and there.kind == here.kind:
        return None
    if there.kind == here.kind and there.loose == here.content.loose and agree(there.blocks, here.content.blocks):
        return Severity.ROUNDING
    if there.literal or there.value is not None:
        return Severity.PLAIN
    return _severity(role, there.kind)


def severity_of(difference: Difference) -> Severity:
    """Return what a difference means whose plain value could not be put right."""
    part = difference.there or difference.here
    return _severity(difference.fact.role, part.kind) if part is not None else Severity.MINOR


def _severity(role: Role, kind: LeafKind) -> Severity:
    if kind == "library":
        return Severity.MINOR
    if role in _DECISIVE or (role in _DATA_READ and kind == "data"):
        return Severity.DECISIVE
    return Severity.MINOR

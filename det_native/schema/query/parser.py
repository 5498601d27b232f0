"""From the text of a query to its tree; a mistake is told with its place and what was expected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Never

from det_native.errors import ArgumentError
from det_native.schema.query import fields
from det_native.schema.query.fields import FIELDS, OTHER_NAMES, PREFIXES
from det_native.schema.query.moments import seconds_of, span_of
from det_native.schema.query.tree import KEYWORDS, And, Comparison, Name, Node, Not, Or
from det_native.schema.states import ExperimentState

#: Longer ones are refused, and those that nest deeper.
LONGEST = 10_000
DEEPEST = 50
_SHOWN = 60

_SPACE = re.compile(r"\s*")
_OPERATOR = re.compile(r"==|!=|<=|>=|=|<|>|~|:")
_PART = re.compile(r"[^\s()<>=!~,:\"'.]+")
_VALUE = re.compile(r"[^\s()<>=!~,\"']+")
_WORD = re.compile(r"[A-Za-z]+(?![\w.:=-])")
_YES = {"yes": True, "true": True, "no": False, "false": False}
_TOKENS = "=, !=, <, <=, >, >=, ~, : or in"


def parse(text: str) -> Node:
    """Return the tree of a query.

    Raises
    ------
    ArgumentError
        If it does not parse: with the place, and what was expected there.
    """
    return _Parser(text).whole()


def number_of(value: str) -> float | None:
    """Return a value as a number, None if it is none."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if not math.isnan(number) and "_" not in value else None


def is_yes(value: str) -> bool:
    """Return whether a value of ``archived`` and the like is yes."""
    return _YES[value.lower()]


def state_named(text: str) -> ExperimentState:
    """Return the state of a name, by either name.

    Raises
    ------
    ArgumentError
        If there is none: with those that there are.
    """
    try:
        return ExperimentState(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is not a state; there are {_states()}.") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        if len(self._text) > LONGEST:
            raise ArgumentError(f"The query has {len(self._text):,} characters; at most {LONGEST:,} are taken.")
        self._skip()
        if self._at == len(self._text):
            self._expected("a comparison, such as val_loss < 0.3")
        found = self._alternatives()
        if self._at < len(self._text):
            self._expected("'and', 'or' or the end")
        return found

    def _alternatives(self) -> Node:
        parts = [self._conjunction()]
        while self._word("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self) -> Node:
        parts = [self._term()]
        while self._word("and"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _term(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            self._expected(f"at most {DEEPEST} brackets within each other")
        try:
            if self._word("not"):
                return Not(self._term())
            if self._sign("("):
                inner = self._alternatives()
                if not self._sign(")"):
                    self._expected("'and', 'or' or ')'")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Node:
        place = self._at
        name = self._name()
        operators = self._operators(name)
        at = self._at
        operator, negated = self._operator()
        if operator not in operators:
            self._at = at
            self._expected(f"one of {', '.join(_shown(each) for each in operators)} after {self._said(place, at)}")
        if operator != "in":
            return Comparison(name, operator, (self._value(name, operator),), place)
        if not self._sign("("):
            self._expected("'(' and values after 'in'")
        values = [self._value(name, operator)]
        while self._sign(","):
            values.append(self._value(name, operator))
        if not self._sign(")"):
            self._expected("',' or ')'")
        found = Comparison(name, operator, tuple(values), place)
        return Not(found) if negated else found

    def _name(self) -> Name:
        place = self._at
        if self._text[self._at : self._at + 1] in ("'", '"'):
            name = Name("bare", (self._quoted(),))
            self._skip()
            return name
        first = self._part()
        if first is None or first[0].isdigit() or first.lower() in KEYWORDS:
            self._at = place
            self._expected("a name, such as val_loss, hp.lr or label")
        parts = [first]
        while self._text[self._at : self._at + 1] == ".":
            self._at += 1
            quoted = self._text[self._at : self._at + 1] in ("'", '"')
            part = self._quoted() if quoted else self._part()
            if part is None:
                self._expected("a name after '.'")
            parts.append(part)
        self._skip()
        return self._meaning(parts)

    @staticmethod
    def _meaning(parts: list[str]) -> Name:
        first = parts[0].lower()
        if len(parts) > 1 and first in PREFIXES:
            return Name(first, (".".join(parts[1:]),) if first == "metric" else tuple(parts[1:]))
        first = OTHER_NAMES.get(first, first)
        return Name("field", (first,)) if len(parts) == 1 and first in FIELDS else Name("bare", (".".join(parts),))

    @staticmethod
    def _operators(name: Name) -> tuple[str, ...]:
        if name.kind == "field":
            return FIELDS[name.parts[0]].operators
        return fields.NUMBERS if name.kind == "metric" else fields.ANY

    def _operator(self) -> tuple[str, bool]:
        found = _OPERATOR.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
            self._skip()
            return found[0].replace("==", "="), False
        if self._word("contains"):
            return "~", False
        place = self._at
        if self._word("not") and self._word("in"):
            return "in", True
        self._at = place
        if not self._word("in"):
            self._expected(_TOKENS)
        return "in", False

    def _value(self, name: Name, operator: str) -> str:
        place = self._at
        if self._text[self._at : self._at + 1] in ("'", '"'):
            value: str = self._quoted()
        else:
            found = _VALUE.match(self._text, self._at)
            if found is None or found[0].lower() in KEYWORDS:
                self._expected("a value, such as 0.3 or a text in quotes")
            value = found[0]
            self._at = found.end()
        wanted = _wanted(name, operator)
        if wanted is not None and not wanted[0](value):
            self._at = place
            self._expected(f"{wanted[1]}, not {value[:_SHOWN]!r}")
        self._skip()
        return value

    def _quoted(self) -> str:
        place, quote = self._at, self._text[self._at]
        self._at += 1
        found: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == quote:
                self._at += 1
                return "".join(found)
            if character == "\\" and self._at + 1 < len(self._text):
                self._at += 1
                character = self._text[self._at]
            found.append(character)
            self._at += 1
        self._at = place
        self._expected(f"a second {quote}, which ends the text")

    def _part(self) -> str | None:
        found = _PART.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _word(self, word: str) -> bool:
        found = _WORD.match(self._text, self._at)
        if found is None or found[0].lower() != word:
            return False
        self._at = found.end()
        self._skip()
        return True

    def _sign(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        self._skip()
        return True

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _said(self, begin: int, end: int) -> str:
        return self._text[begin:end].strip()

    def _expected(self, what: str) -> Never:
        at = self._at
        begin = max(at - _SHOWN, 0)
        shown = "".join(" " if each.isspace() else each for each in self._text[begin : at + _SHOWN])
        found = "" if at < len(self._text) else ", where it ends"
        place = f"  {shown}\n  {' ' * (at - begin)}^"
        raise ArgumentError(f"The query does not parse at character {at + 1}{found}: expected {what}.\n{place}")


def _wanted(name: Name, operator: str) -> tuple[Callable[[str], bool], str] | None:
    """Return whether a value will do, and what is expected in words; None where any text does."""
    if name.kind != "field":
        if operator in ("<", "<=", ">", ">=") or name.kind == "metric":
            return (lambda value: number_of(value) is not None), "a number"
        return None
    return {
        "number": ((lambda value: number_of(value) is not None), "a number"),
        "id": ((lambda value: number_of(value) is not None), "the number of an experiment"),
        "state": (_is_state, f"a state: {_states()}"),
        "yes or no": ((lambda value: value.lower() in _YES), "yes or no"),
        "duration": ((lambda value: seconds_of(value) is not None), "a duration, such as 90s, 10m or 2h"),
        "time": (_is_time, "a date (2026-11-01), a time (2026-11-01T10:30) or an age (7d)"),
    }.get(FIELDS[name.parts[0]].type)


def _is_time(value: str) -> bool:
    return span_of(value, datetime.now(UTC)) is not None


def _is_state(value: str) -> bool:
    try:
        return bool(ExperimentState(value))
    except ValueError:
        return False


def _states() -> str:
    return ", ".join(state.value for state in ExperimentState if state is not ExperimentState.DELETED)


def _shown(operator: str) -> str:
    return "contains (~)" if operator == "~" else operator

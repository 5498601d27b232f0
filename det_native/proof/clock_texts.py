"""Texts that a program has made from a clock or from entropy: two of one program differ, and have one shape. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from det_native.proof.own_values import dates_of_process

#: Digits that count as drawn or read from a clock wherever they stand; fewer may count something.
LEAST_DIGITS = 6
_LEAST_RANDOM = 8
_PIECE = re.compile(
    r"""
    (?P<uuid> (?<![0-9A-Za-z]) [0-9A-Fa-f]{8} (?:-[0-9A-Fa-f]{4}){3} -[0-9A-Fa-f]{12} (?![0-9A-Za-z]))
    | (?P<temporary> (?<![0-9A-Za-z]) (?:tmp)? [0-9a-z_]{8} (?=$|[/.]))  # as tempfile draws them
    | (?P<word> [0-9A-Za-z]+)
    """,
    re.VERBOSE,
)
_PARTS = re.compile(r"\d+|[A-Za-z]+")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_RUN = re.compile(r"\d+(?:(?:[-_:., /]{1,2}|[ThHmMsS])\d+)*")
_TIME_OF_DAY = re.compile(r"(?<!\d)\d\d(?:[-_:hHmM]\d\d){2,}(?!\d)")
# How many digits are written of a fraction differs from moment to moment.
_FRACTION = re.compile(r"(?<=\d{9}\.)\d+|(?<=:\d\d\.)\d+")
_CALENDAR = frozenset(
    name.lower()
    for names in (calendar.month_abbr, calendar.month_name, calendar.day_abbr, calendar.day_name, ("AM", "PM"))
    for name in names
)


@dataclass(frozen=True)
class _Piece:
    kind: str
    text: str
    start: int
    moment: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def may_differ(text: str) -> bool:
    """Whether a part of a text may come from a clock or from entropy."""
    return any(_is_drawn(piece) for piece in _pieces(text))


def is_same_shape(here: str, there: str) -> bool:
    """Whether two texts differ only in what comes from a clock or from entropy.

    Examples
    --------
    >>> is_same_shape("a_20990101-101500", "a_20990101-101507"), is_same_shape("cuda:0", "cuda:1")
    (True, False)
    """
    pairs = _pairs(here, there)
    return pairs is not None and any(first.text != second.text for first, second in pairs)


def exchanges(here: str, there: str) -> dict[str, str]:
    """Return what stands in names of files for what differs: of each part of a path the moment, or the drawn name."""
    pairs = _pairs(here, there) or []
    differing = [(first, second) for first, second in pairs if first.text != second.text]
    found: dict[str, str] = {}
    for first, second in differing:
        start, end = _span(here, first)
        other_start, other_end = _span(there, second)
        if end - start >= LEAST_DIGITS:
            found[here[start:end]] = there[other_start:other_end]
    return found


def _pairs(here: str, there: str) -> list[tuple[_Piece, _Piece]] | None:
    """Return the pieces of two texts of one shape, side by side; None if they have not one shape."""
    first, second = _FRACTION.sub("0", here), _FRACTION.sub("0", there)
    pieces, others = list(_pieces(first)), list(_pieces(second))
    if len(pieces) != len(others) or list(_between(first, pieces)) != list(_between(second, others)):
        return None
    pairs = list(zip(pieces, others, strict=True))
    return pairs if all(_fits(*pair) for pair in pairs) else None


def _pieces(text: str) -> Iterator[_Piece]:
    moments = [match.span() for match in _RUN.finditer(text) if _is_moment(match[0])]
    for match in _PIECE.finditer(text):
        moment = any(start < match.end() and match.start() < end for start, end in moments)
        moment = moment or (bool(moments) and match[0].lower() in _CALENDAR)
        yield _Piece(match.lastgroup or "", match[0], match.start(), moment)


def _between(text: str, pieces: Iterable[_Piece]) -> Iterator[str]:
    end = 0
    for piece in pieces:
        yield text[end : piece.start]
        end = piece.end
    yield text[end:]


def _is_moment(run: str) -> bool:
    """Whether digits, with what stands between them, have a day on which this process ran, or a time of day."""
    digits = "".join(character for character in run if character.isdigit())
    if len(digits) < LEAST_DIGITS:
        return False
    return bool(_TIME_OF_DAY.search(run)) or any(date in digits for date in dates_of_process())


def _is_drawn(piece: _Piece) -> bool:
    text, parts = piece.text, _PARTS.findall(piece.text)
    if piece.kind == "uuid" or text.startswith("tmp"):
        return True
    digits = [part for part in parts if part.isdigit()]
    return bool(digits) and (
        piece.moment or len(text) >= _LEAST_RANDOM or any(len(part) >= LEAST_DIGITS for part in digits)
    )


def _fits(here: _Piece, there: _Piece) -> bool:
    if here.text == there.text:
        return True
    if len(here.text) != len(there.text) or here.kind != there.kind:
        return False
    if here.kind == "uuid":
        return True
    parts, others = _PARTS.findall(here.text), _PARTS.findall(there.text)
    if here.kind == "temporary" and here.text.startswith("tmp") and len(here.text) > _LEAST_RANDOM:
        return True
    moment = here.moment or there.moment
    if [_form(part) for part in parts] == [_form(part) for part in others]:
        if all(_part_fits(*pair, moment=moment) for pair in zip(parts, others, strict=True)):
            return True
        if [part for part in parts if part.isalpha()] == [part for part in others if part.isalpha()]:
            return False  # resnet18 and resnet50
    if len(here.text) < _LEAST_RANDOM:
        return False
    digits = [any(map(str.isdigit, piece.text)) for piece in (here, there)]
    if here.kind == "temporary" or (_HEX.fullmatch(here.text) and _HEX.fullmatch(there.text)):
        return any(digits)
    return all(digits) and not here.text.isdigit() and not there.text.isdigit()


def _form(part: str) -> tuple[bool, int]:
    return part.isdigit(), len(part)


def _part_fits(here: str, there: str, *, moment: bool) -> bool:
    if here == there:
        return True
    if here.isdigit():
        return moment or len(here) >= LEAST_DIGITS
    return moment and here.lower() in _CALENDAR and there.lower() in _CALENDAR


def _span(text: str, piece: _Piece) -> tuple[int, int]:
    """Return where a piece lies with the moment that it is a part of."""
    runs = (match for match in _RUN.finditer(text) if match.start() < piece.end and piece.start < match.end())
    start, end = piece.start, piece.end
    for run in runs:
        if piece.moment and "/" not in run[0]:
            start, end = min(start, run.start()), max(end, run.end())
    return start, end

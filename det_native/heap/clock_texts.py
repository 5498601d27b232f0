"""Texts that a program has made from a clock or from entropy: two of one program differ, and have one shape. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator

from det_native.heap.clock_times import recent_dates

#: Digits that count as drawn or read from a clock wherever they stand; fewer may count something.
LEAST_DIGITS = 6
_LEAST_RANDOM = 8
_WORD = re.compile(
    r"""
    (?<![0-9A-Za-z]) [0-9A-Fa-f]{8} (?:-[0-9A-Fa-f]{4}){3} -[0-9A-Fa-f]{12} (?![0-9A-Za-z])
    | (?<![0-9A-Za-z]) (?:tmp)? [0-9a-z_]{8} (?=$|[/.])  # as tempfile draws them
    | [0-9A-Za-z]{6,}
    """,
    re.VERBOSE,
)
_DRAWN = re.compile(r"[0-9a-f-]+|[0-9A-F-]+|[0-9a-z_]{8}")
_DIGITS = re.compile(r"\d+")
_RUN = re.compile(r"\d+(?:(?:[-_:., ]{1,2}|[ThHmMsS])\d+)*")
_TIME_OF_DAY = re.compile(r"(?<!\d)\d\d(?:[-_:hHmM]\d\d){2,}(?!\d)")
# How many digits are written of a fraction differs from moment to moment.
_FRACTION = re.compile(r"(?<=\d{9}\.)\d+|(?<=:\d\d\.)\d+")
_NAMES = "|".join((*calendar.month_abbr[1:], *calendar.day_abbr, "AM", "PM"))
_CALENDAR = re.compile(rf"(?i)(?<![a-z])(?:{_NAMES})(?![a-z])")


def may_differ(text: str) -> bool:
    """Whether a part of a text may come from a clock or from entropy."""
    return any(True for _ in _spans(text))


def is_same_shape(here: str, there: str) -> bool:
    """Whether two texts differ only in what comes from a clock or from entropy.

    Examples
    --------
    >>> is_same_shape("a_20990101-101500", "a_20990101-101507"), is_same_shape("cuda:0", "cuda:1")
    (True, False)
    """
    return bool(_differing(here, there))


def exchanges(here: str, there: str) -> dict[str, str]:
    """Return by what the differing parts of file names are replaced: moments, and names that were drawn."""
    return {old: new for old, new in _differing(here, there) if len(old) >= LEAST_DIGITS}


def _differing(here: str, there: str) -> list[tuple[str, str]]:
    """Return the differing parts of two texts of one shape, side by side; nothing if they have not one shape."""
    return _pairs(here, there) or _pairs(_FRACTION.sub("", here), _FRACTION.sub("", there))


def _pairs(here: str, there: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    done = 0
    for start, end, moment in _merged([*_spans(here), *_spans(there)]):
        if here[done:start] != there[done:start]:
            return []
        pair, done = (here[start:end], there[start:end]), end
        if pair[0] != pair[1]:
            if not _fits(*pair, moment=moment):
                return []
            found.append(pair)
    return found if here[done:] == there[done:] else []


def _spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where a text may be drawn, or, with True, be of a moment."""
    moments = [match for match in _RUN.finditer(text) if _is_moment(match[0])]
    for match in (*moments, *(_CALENDAR.finditer(text) if moments else ())):
        yield *match.span(), True
    for match in _WORD.finditer(text):
        digits = [len(digits) for digits in _DIGITS.findall(match[0])]
        if match[0].startswith("tmp") or (digits and max(len(match[0]) - 2, *digits) >= LEAST_DIGITS):
            yield *match.span(), False


def _merged(spans: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    merged: list[tuple[int, int, bool]] = []
    for start, end, moment in sorted(spans):
        if merged and start <= merged[-1][1]:
            start, before, other = merged.pop()
            end, moment = max(end, before), moment or other
        merged.append((start, end, moment))
    return merged


def _is_moment(run: str) -> bool:
    """Whether digits, with what stands between them, have one of the last days, or a time of day."""
    digits = "".join(_DIGITS.findall(run))
    if len(digits) < LEAST_DIGITS:
        return False
    return bool(_TIME_OF_DAY.search(run)) or any(date in digits for date in recent_dates())


def _fits(here: str, there: str, *, moment: bool) -> bool:
    if len(here) != len(there):
        return False
    forms = [re.sub(r"\d", "0", _CALENDAR.sub("@", text) if moment else text) for text in (here, there)]
    if forms[0] == forms[1]:  # resnet18 and resnet50 are of one form, too
        pairs = zip(_DIGITS.findall(here), _DIGITS.findall(there), strict=True)
        return moment or all(first == second or len(first) >= LEAST_DIGITS for first, second in pairs)
    if here.startswith("tmp") and there.startswith("tmp"):
        return True
    has_digits = [_DIGITS.search(text) is not None for text in (here, there)]
    if len(here) < _LEAST_RANDOM or not any(has_digits):
        return False
    random = all(_DRAWN.fullmatch(text) for text in (here, there))
    return random or (all(has_digits) and not here.isdigit() and not there.isdigit())

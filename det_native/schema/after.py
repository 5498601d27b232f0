"""What ``after`` may say: the experiments that have to complete before this one begins."""

from __future__ import annotations

import re
from typing import Any

_WORDS = re.compile(
    r"(?:experiments?\s)?\s*([1-9][0-9]{0,17}(?:\s*(?:,|,?\sand\s)\s*[1-9][0-9]{0,17})*)", re.IGNORECASE
)
_NUMBER = re.compile(r"[0-9]+")


def numbers_after(value: Any) -> Any:
    """Return the numbers of experiments as a list: of a number, of a text such as ``experiment 7``, of a list of these.

    What is neither number nor text stays as it is.

    Raises
    ------
    ValueError
        If a text names no experiments.
    """
    if isinstance(value, str):
        return _named(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if isinstance(value, list | tuple):
        return [number for entry in value for number in (_named(entry) if isinstance(entry, str) else [entry])]
    return value


def _named(text: str) -> list[int]:
    found = _WORDS.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            "must be the number of an experiment on the cluster, several of them, or a text such as "
            f"'experiment 7' or 'experiments 7, 9', not {text[:100]!r}"
        )
    return [int(number) for number in _NUMBER.findall(found[1])]

"""Paths of which parts are known only to the code that runs, and whether two of them may be the same. Pure.

A pattern is an absolute path with ``*`` for such a part, of any length, or begins with one.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

_OPEN = re.compile(r"[*?\0]+|\[[^\]/]*\]")
_MANY = re.compile(r"\*+")


def pattern_of(text: str, folder: str) -> str | None:
    """Return the pattern of a text of a program that is a path, or one to search for.

    Parameters
    ----------
    text : str
        With holes for what is not known of it.
    folder : str
        The working directory.

    Returns
    -------
    str or None
        None if nothing of it is known, or it is an address.
    """
    if "://" in text or "\n" in text or not text.strip():
        return None
    pattern = _MANY.sub("*", _OPEN.sub("*", text))
    if not any(letter.isalnum() for letter in pattern):
        return folder if text in (".", "./") else None
    if pattern.startswith("*"):
        return pattern
    return os.path.normpath(os.path.join(folder, os.path.expanduser(pattern)))


def concerns(read: str, written: str) -> bool:
    """Whether who reads one pattern may come upon what is written to the other.

    That is so for the same path, for a folder and what is in it, and for the folder of all that is searched for.
    """
    return (
        meet(read, written)
        or any(meet(read, folder) for folder in _folders(written))
        or any(meet(folder, written) for folder in _folders(read))
    )


def _folders(pattern: str) -> list[str]:
    """Return the folders in which what a pattern means lies; one of which nothing is known is left out."""
    parts = pattern.split("/")
    folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
    return [folder for folder in folders if folder not in ("", "*")]


@lru_cache(maxsize=4096)
def meet(first: str, second: str) -> bool:
    """Whether there is a text that both patterns match."""
    # Places in `second` at which a match of what was gone through of `first` may stand.
    places = _over_stars({0}, second)
    for letter in first:
        if letter == "*":
            places = set(range(min(places), len(second) + 1))
            continue
        places = _over_stars({_step(place, second, letter) for place in places} - {-1}, second)
        if not places:
            return False
    return len(second) in places


def _step(place: int, pattern: str, letter: str) -> int:
    """Return the place after a letter; -1 if it does not stand there."""
    if place == len(pattern):
        return -1
    if pattern[place] == "*":
        return place
    return place + 1 if pattern[place] == letter else -1


def _over_stars(places: set[int], pattern: str) -> set[int]:
    """Add the places that are reached by letting a star stand for nothing."""
    found = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == "*":
            place += 1
            found.add(place)
    return found

"""Paths that a program reads where it runs: looked for before it runs, not met at its first batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from det_native.errors import BundleCheckError, Problem
from det_native.schema.manifests import ReadEntry


def unreadable(reads: Sequence[ReadEntry]) -> Iterator[Problem]:
    """Yield what is not there, or may not be read."""
    for one in reads:
        fault = _fault(one.path) if one.certain else ""
        if fault:
            yield Problem(
                one.where,
                f"reads {one.path!r}, which on the machine of the workers {fault}.",
                f"Correct it, bring it to the workers (`det data put {one.path}`, after which the same line reads it "
                "there), or name a path or URL that they see.",
            )


def notices(reads: Sequence[ReadEntry]) -> Iterator[str]:
    """Yield sentences on what is named and is not there, but may not be read."""
    for one in reads:
        fault = "" if one.certain else _fault(one.path)
        if fault:
            yield (
                f"{one.where}, names {one.path!r}, which on the machine of the workers {fault}. If it is read, bring "
                f"it there (`det data put {one.path}`, after which the same line reads it)."
            )


def _fault(path: str) -> str:
    path = os.path.expanduser(path)
    if "://" in path:  # a client of another version names URLs, too
        return ""
    if not os.path.exists(path):
        return "is not there"
    return "" if os.access(path, os.R_OK) else "may not be read"


def check_reads(reads: Sequence[ReadEntry]) -> None:
    """Refuse to begin where a path is not there.

    Raises
    ------
    BundleCheckError
        Listing all of them.
    """
    problems = list(unreadable(reads))
    if problems:
        raise BundleCheckError("The program cannot read its data:", problems)

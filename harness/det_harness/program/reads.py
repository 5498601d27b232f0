"""Paths that a program reads where it runs: looked for before it runs, not met at its first batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from det_native.errors import BundleCheckError, Problem
from det_native.schema.manifests import ReadEntry


def unreadable(reads: Sequence[ReadEntry]) -> Iterator[Problem]:
    """Yield what is not there, or may not be read."""
    for entry, fault in _faults(reads, certain=True):
        yield Problem(
            entry.where,
            f"reads {entry.path!r}, which on the machine of the workers {fault}.",
            f"Correct it, bring it to the workers (`det data put {entry.path}`, after which the same line reads it "
            "there), or name a path or URL that they see.",
        )


def notices(reads: Sequence[ReadEntry]) -> Iterator[str]:
    """Yield sentences on what is named and is not there, but may not be read."""
    for entry, fault in _faults(reads, certain=False):
        yield (
            f"{entry.where}, names {entry.path!r}, which on the machine of the workers {fault}. If it is read, bring "
            f"it there (`det data put {entry.path}`, after which the same line reads it)."
        )


def _faults(reads: Sequence[ReadEntry], *, certain: bool) -> Iterator[tuple[ReadEntry, str]]:
    entries = (entry for entry in reads if entry.certain is certain)
    return ((entry, fault) for entry in entries if (fault := _fault(entry.path)))


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

"""Paths and URLs that a program reads where it runs: looked for before it runs, not met at its first batch."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from det_native.errors import BundleCheckError, Problem
from det_native.schema.manifests import ReadEntry

_SECONDS = 5.0
_GONE = (404, 410)


def unreadable(reads: Sequence[ReadEntry], *, urls: bool) -> Iterator[Problem]:
    """Yield what is not there, or may not be read.

    Parameters
    ----------
    reads : sequence of ReadEntry
    urls : bool
        Whether to ask for URLs, too. One whose server takes its time, or wants to know who asks, counts as there.
    """
    for one in reads:
        fault = _fault(one.path, urls=urls) if one.certain else ""
        if fault:
            remedy = (
                "Correct it, or name a path or URL that the workers see."
                if "://" in one.path
                else f"Correct it, bring it to the workers (`det data put {one.path}`, after which the same line reads "
                "it there), or name a path or URL that they see."
            )
            yield Problem(one.where, f"reads {one.path!r}, which on the machine of the workers {fault}.", remedy)


def notices(reads: Sequence[ReadEntry]) -> Iterator[str]:
    """Yield sentences on what is named and is not there, but may not be read."""
    for one in reads:
        fault = "" if one.certain else _fault(one.path, urls=False)
        if fault:
            yield (
                f"{one.where}, names {one.path!r}, which on the machine of the workers {fault}. If it is read, bring "
                f"it there (`det data put {one.path}`, after which the same line reads it)."
            )


def _fault(path: str, *, urls: bool) -> str:
    if "://" in path:
        return _fault_of_url(path) if urls else ""
    path = os.path.expanduser(path)
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
    problems = list(unreadable(reads, urls=False))
    if problems:
        raise BundleCheckError("The program cannot read its data:", problems)


def _fault_of_url(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        return ""
    request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "det_native"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return f"is not there (HTTP {error.code})" if error.code in _GONE else ""
    except urllib.error.URLError as error:
        return "" if isinstance(error.reason, TimeoutError) else f"cannot be reached ({error.reason})"
    except (OSError, ValueError):
        return ""

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
        if "://" in one.path:
            fault = _fault_of_url(one.path) if urls else ""
        else:
            path = os.path.expanduser(one.path)
            fault = (
                "is not there" if not os.path.exists(path) else "" if os.access(path, os.R_OK) else "may not be read"
            )
        if fault:
            remedy = "Correct it, or bring the file to the cluster's store: `det data put`."
            yield Problem(one.where, f"reads {one.path!r}, which on the machine of the workers {fault}.", remedy)


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

"""Which of the master's routes a user interface may use: pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, quote

_NUMBER = r"[0-9]{1,18}"
_UUID = r"[0-9A-Za-z-]{1,64}"
_SHA = r"[0-9a-f]{64}"
_MODEL = r"models/[^/]{1,1000}"
_READ = re.compile(
    r"health|master|events|space|trial-summaries|models|messages|schedules|data|queue"
    r"|experiment-(list|rows|groups|names|views)"
    rf"|experiments(/{_NUMBER}(/[a-z-]+)?)?"
    rf"|trials/{_NUMBER}(/[a-z]+)?"
    rf"|trials/{_NUMBER}/(artifacts|media/{_NUMBER})/content"
    rf"|checkpoints/{_UUID}(/models|/files/.+)?"
    rf"|{_MODEL}(/versions(/{_NUMBER})?)?"
    rf"|bundles/{_SHA}|blobs/{_SHA}|configuration-schema",
    re.DOTALL,
)
_ASKED = re.compile(
    rf"experiments/{_NUMBER}/(pause|resume|stop|kill|activate|cancel|fork|continue)"
    rf"|checkpoints/{_UUID}/verify|models|{_MODEL}/versions"
    rf"|schedules/{_NUMBER}/(pause|resume)|space/clean"
)
_CHANGED = re.compile(rf"experiments/{_NUMBER}|checkpoints/{_UUID}|{_MODEL}(/versions/{_NUMBER})?")
_DELETED = re.compile(rf"{_CHANGED.pattern}|experiment-views|schedules/{_NUMBER}")
_PUT = re.compile(rf"experiments/{_NUMBER}/gc-policy|experiment-views")
_FILE = re.compile(r"checkpoints/[^/]+/files/.+|trials/[0-9]+/artifacts/content", re.DOTALL)
_PATTERNS = {"GET": _READ, "POST": _ASKED, "PATCH": _CHANGED, "PUT": _PUT, "DELETE": _DELETED}

# What speaks to the Jupyter server, not to the master.
_OURS = {"token", "_xsrf", "no_track_activity"}


def resolve(method: str, path: str) -> str | None:
    """Return a path of the master, percent-encoded and with a leading slash; None where nothing is forwarded.

    Parameters
    ----------
    method : str
    path : str
        Below ``master/``, decoded once.
    """
    pattern = _PATTERNS.get(method)
    segments = path.split("/")
    if pattern is None or not pattern.fullmatch(path) or not all(map(_is_plain, segments)):
        return None
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


def is_file(path: str) -> bool:
    """Return whether a path is that of a file to be saved: of a checkpoint, or written by a training."""
    return _FILE.fullmatch(path) is not None


def parameters(query: str) -> Sequence[tuple[str, str]]:
    """Return the parameters of a query that are meant for the master."""
    return [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in _OURS]


def _is_plain(segment: str) -> bool:
    """Return whether a segment names something, and nothing outside of its folder."""
    return segment not in ("", ".", "..") and "\\" not in segment and segment.isprintable()

"""Which of the master's routes a user interface may use: pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl, quote

from det_native.schema.bodies import API
from det_native.schema.routes import (
    GET_ARTIFACT_CONTENT,
    GET_CHECKPOINT_FILE,
    GET_HEALTH,
    GET_NOTEBOOK,
    Access,
    find_route,
)

# What speaks to the Jupyter server, not to the master.
_OURS = {"token", "_xsrf", "no_track_activity"}


def resolve(method: str, path: str) -> str | None:
    """Return the address of a route of the master, percent-encoded; None where nothing is forwarded.

    Parameters
    ----------
    path : str
        Below ``master/``, decoded once.
    """
    route = find_route(method, f"{API}/{path}")
    segments = path.split("/")
    if route is None or not (route.access is Access.FRONT_END or route is GET_HEALTH):
        return None
    return (
        "/".join([API, *(quote(segment, safe="") for segment in segments)]) if all(map(_is_plain, segments)) else None
    )


def is_file(path: str) -> bool:
    """Return whether a path is that of a file to be saved: of a checkpoint, written by a training, or a notebook."""
    return find_route("GET", f"{API}/{path}") in (GET_CHECKPOINT_FILE, GET_ARTIFACT_CONTENT, GET_NOTEBOOK)


def parameters(query: str) -> Sequence[tuple[str, str]]:
    """Return the parameters of a query that are meant for the master."""
    return [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in _OURS]


def _is_plain(segment: str) -> bool:
    """Return whether a segment names something, and nothing outside of its folder."""
    return segment not in ("", ".", "..") and "\\" not in segment and segment.isprintable()

"""Which requests a browser's session opens: what the page needs. All else wants the token.

Left out on purpose: what runs code that the master has not seen before (new experiments and schedules, uploads), what
ends the master, what says where messages go, codes for more sessions, and the routes of workers.
"""

from __future__ import annotations

import re

_PREFIX = "/api/v1/"
_READ = frozenset({"GET", "HEAD"})
#: First parts of paths that may be read.
READABLE = frozenset(
    {
        "bundles",
        "blobs",
        "checkpoints",
        "configuration-schema",
        "data",
        "events",
        "experiment-groups",
        "experiment-list",
        "experiment-names",
        "experiment-rows",
        "experiment-views",
        "experiments",
        "health",
        "master",
        "messages",
        "models",
        "queue",
        "schedules",
        "session",
        "settings",
        "space",
        "trial-summaries",
        "trials",
    }
)
#: First parts of paths below which everything may be changed.
CHANGEABLE = frozenset({"checkpoints", "experiment-views", "models", "session", "space", "trials"})
_MORE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(POST|PUT|PATCH|DELETE) experiments/.+",
        r"POST schedules/[^/]+/(pause|resume)",
        r"DELETE schedules/[^/]+",
    )
)


def is_for_pages(method: str, path: str) -> bool:
    """Return whether a session opens a request."""
    if not path.startswith(_PREFIX):
        return False
    rest = path.removeprefix(_PREFIX)
    first = rest.partition("/")[0]
    if method in _READ:
        return first in READABLE
    return first in CHANGEABLE or any(pattern.fullmatch(f"{method} {rest}") for pattern in _MORE)

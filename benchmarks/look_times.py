"""Prints, for each notebook of a group, the seconds of a processor that looking adds to a cell of it, ten times."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import looked_at

from det_native.capture.watch import Watch
from det_native.process.streams import current_streams

_TIMES = 10


def times(notebook: looked_at.Notebook) -> list[float]:
    """Return how long the looks around the measured cell take, once they have been taken before."""
    names: dict[str, Any] = {"__name__": "__main__"}
    watch = Watch()
    for source in (notebook.setup, notebook.cell):
        watch.begin(names, (), source)
        exec(source, names)  # noqa: S102 (ours)
        watch.end(names, (), source)
    found = []
    for _ in range(_TIMES):
        begin = time.thread_time()
        watch.begin(names, (), notebook.cell)
        current_streams()
        before = time.thread_time() - begin
        exec(notebook.cell, names)  # noqa: S102 (ours)
        begin = time.thread_time()
        watch.end(names, (), notebook.cell)
        current_streams()
        found.append(before + time.thread_time() - begin)
    return found


if __name__ == "__main__":
    # As in a kernel's main module.
    sys.modules["__main__"].__dict__.pop("json_", None)
    print(json.dumps({each.what: times(each) for each in getattr(looked_at, sys.argv[1])}))

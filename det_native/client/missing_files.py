"""Files that the code did not find on its worker, but that lie here: what to do about them."""

from __future__ import annotations

import re
from pathlib import Path

from det_native.client.source import Source
from det_native.errors import DetError
from det_native.schema import rest

_MISSING = re.compile(r"No such file or directory: '([^']+)'")


def not_sent(source: Source, experiment_id: int | str, error: rest.UserErrorInfo) -> str:
    """Return a line that says how a file gets to the worker which the code missed there; empty for other errors.

    Parameters
    ----------
    source : Source
    experiment_id : int or str
    error : UserErrorInfo
    """
    found = _MISSING.search(error.message) if error.type == "FileNotFoundError" else None
    if found is None or not source.url:  # a run in a process of this machine sees what lies here
        return ""
    path = Path(found[1])
    try:
        if path.is_absolute() or not path.exists():
            return ""
        if path.as_posix() in {file.path for file in source.bundle(experiment_id).files}:
            return ""
    except (DetError, OSError):
        return ""  # The hint is not worth another error.
    return (
        f"\n{str(path)!r} exists here, in {Path.cwd()}, but was not sent with the experiment: "
        f"init(..., include=[{str(path)!r}]) sends it, or a context_dir that holds it."
    )

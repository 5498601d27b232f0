"""Errors of a worker about files that did not travel with the code, or did: what to do about them."""

from __future__ import annotations

import re
from pathlib import Path

from det_native.client.source import Source
from det_native.errors import DetError
from det_native.schema import rest

_PATH = re.compile(r"(?:No such file or directory|File exists): '([^']+)'")


def travel_hint(source: Source, experiment_id: int, error: rest.UserErrorInfo) -> str:
    """Return a line that says how a file gets to the worker which the code missed there, or why it is there already.

    It is empty for other errors.

    Parameters
    ----------
    source : Source
    experiment_id : int
    error : UserErrorInfo
    """
    found = _PATH.search(error.message) if error.type in {"FileNotFoundError", "FileExistsError"} else None
    if found is None:
        return ""
    path = Path(found[1])
    try:
        if path.is_absolute() or not path.exists() or source.experiment(experiment_id).in_kernel:
            return ""  # what trains in a kernel sees what lies here
        sent = [Path(file.path) for file in source.bundle(experiment_id).files]
    except (DetError, OSError):
        return ""  # The hint is not worth another error.
    if error.type == "FileExistsError":
        return _exists(path) if any(path in (one, *one.parents) for one in sent) else ""
    return "" if path in sent else _missing(path)


def _missing(path: Path) -> str:
    return (
        f"\n{str(path)!r} exists here, in {Path.cwd()}, but was not sent with the experiment: "
        f"init(..., include=[{str(path)!r}]) sends it, or a context_dir that holds it."
    )


def _exists(path: Path) -> str:
    way = f"os.makedirs({str(path)!r}, exist_ok=True) takes it as it is" if path.is_dir() else "let the code look first"
    return f"\n{str(path)!r} was sent with the experiment, so it is there before any cell runs: {way}."

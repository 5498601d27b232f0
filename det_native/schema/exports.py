"""What the exporters of an EvalSpec have returned, as a checkpoint keeps it for the call that has trained."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: In a checkpoint: what each exporter has returned last, in the order of the EvalSpec.
INDEX = "exports.json"
#: In a checkpoint, and in the ``model_dir`` of an estimator: what was exported, by exporter.
FOLDER = "export"

Entry = str | dict[str, str] | None


class UnwritableError(ValueError):
    """An exporter has returned something that has no text which gives it back."""


def entry_of(made: Any, model_dir: str | os.PathLike[str]) -> Entry:
    """Return how a checkpoint keeps what an exporter has returned.

    What lies in the folder of the exports is kept relative to `model_dir`; any other value by its literal.

    Raises
    ------
    UnwritableError
    """
    if made is None:
        return None
    if isinstance(made, bytes | str):
        inside = _inside(os.fsdecode(made), model_dir)
        if inside is not None:
            return inside if isinstance(made, bytes) else {"path": inside}
    text = repr(made)
    try:
        given_back = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise UnwritableError(f"a {type(made).__name__}") from error
    if type(given_back) is not type(made):
        raise UnwritableError(f"a {type(made).__name__}")
    return {"literal": text}


def lies_in_folder(entry: Entry) -> bool:
    """Return whether an entry is of what an exporter has left in the folder of the exports."""
    return isinstance(entry, str) or (entry is not None and "path" in entry)


def value_of(entry: Entry, folder: Path) -> Any:
    """Return what an exporter has returned; `folder` has the files of the checkpoint."""
    if entry is None:
        return None
    if isinstance(entry, str):  # as TensorFlow's own exporters return it
        return os.fsencode(folder / entry)
    return str(folder / entry["path"]) if "path" in entry else ast.literal_eval(entry["literal"])


def write(entries: Sequence[Entry], folder: Path) -> None:
    """Write what the exporters have returned into the folder of a checkpoint."""
    (folder / INDEX).write_text(json.dumps(list(entries)), encoding="utf-8")


def read(folder: Path, names: Sequence[str]) -> list[Any]:
    """Return what the exporters of these names had returned when a checkpoint was taken, whose files lie in `folder`.

    Where nothing says that, it is the last folder that each has left.
    """
    if not (folder / INDEX).is_file():
        return [_newest(folder / FOLDER / name) for name in names]
    return [value_of(entry, folder) for entry in json.loads((folder / INDEX).read_text(encoding="utf-8"))]


def _newest(folder: Path) -> bytes | None:
    times = [path for path in folder.glob("*") if path.name.isdigit() and path.is_dir()]
    return os.fsencode(max(times, key=lambda path: int(path.name))) if times else None


def _inside(path: str, model_dir: str | os.PathLike[str]) -> str | None:
    found = os.path.relpath(os.path.realpath(path), os.path.realpath(model_dir))
    return found.replace(os.sep, "/") if found.split(os.sep)[0] == FOLDER else None

"""Files that callbacks hold open: opened again after a restart where they stood."""

from __future__ import annotations

import csv
import gc
import io
import os
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

_CsvWriter: Any = type(csv.writer(io.StringIO()))
_FORMAT = ("delimiter", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting", "skipinitialspace")


def go_on(files: Iterable[Any]) -> None:
    """Have files that the program has opened again be written at their ends, as they have their content again."""
    for file in files:
        if isinstance(file, tf.io.gfile.GFile):
            if file.mode.startswith("w"):  # it would truncate the file with its first write
                vars(file).update(_FileIO__mode=f"a{'b' if 'b' in file.mode else ''}", _writable_file=None)
        elif not file.closed and _has_path(file) and file.writable() and file.seekable():
            file.seek(0, os.SEEK_END)


def reduced(value: Any) -> Any:
    """Return how a file, or a writer of rows to one, is pickled; NotImplemented for anything else."""
    if isinstance(value, tf.io.gfile.GFile):
        return _open_tensorflow, (_within(value.name), value.mode)
    if isinstance(value, io.TextIOWrapper) and not value.closed and _has_path(value):
        return _open_text, (_within(value.name), value.mode, value.tell(), value.encoding, value.errors)
    if isinstance(value, io.BufferedIOBase | io.FileIO) and not value.closed and _has_path(value):
        return _open_binary, (_within(value.name), value.mode, value.tell())  # type: ignore[union-attr]
    if isinstance(value, _CsvWriter):
        settings = {name: getattr(value.dialect, name) for name in _FORMAT}
        return _write_rows, (_target(value), settings)
    return NotImplemented


def _has_path(value: Any) -> bool:
    return isinstance(getattr(value, "name", None), str | os.PathLike)


def _within(name: Any) -> str:
    """Return a path as it is in any run: relative where it lies in the working directory."""
    path = os.fspath(name)
    path = path.decode() if isinstance(path, bytes) else path
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative


def _target(writer: Any) -> Any:
    """Return what a writer of rows writes to; it tells only the garbage collector."""
    for each in gc.get_referents(writer):
        owner = getattr(each, "__self__", None)
        if callable(each) and owner is not None and getattr(each, "__name__", "") == "write":
            return owner
    raise TypeError("the file of a csv writer cannot be found")


def _open_tensorflow(name: str, mode: str) -> Any:
    binary = "b" if "b" in mode else ""
    return tf.io.gfile.GFile(name, mode if mode.startswith("r") else f"a{binary}")


def _open_text(name: str, mode: str, position: int, encoding: str, errors: str) -> Any:
    return _at(open(name, _continuing(mode), encoding=encoding, errors=errors), position)


def _open_binary(name: str, mode: str, position: int) -> Any:
    return _at(open(name, _continuing(mode)), position)


def _continuing(mode: str) -> str:
    """Return the mode in which a file is opened again: nothing of it is cut off."""
    return mode if mode[0] in "ra" else f"r+{'b' if 'b' in mode else ''}"


def _at(file: Any, position: int) -> Any:
    file.seek(position)
    return file


def _write_rows(target: Any, settings: dict[str, Any]) -> Any:
    return csv.writer(target, **settings)

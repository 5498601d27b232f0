"""The program of an experiment as ``det experiment code`` prints it: cells or command, files, what was sent along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from det_native.client.program_parts import CELL, LARGEST_TEXT, text_of
from det_native.errors import NotFoundError
from det_native.schema.manifests import BundleManifest, FileEntry

ReadBlob = Callable[[str], bytes]

# More files, or more bytes of them, are listed and not printed.
_MOST_FILES = 30
_MOST_BYTES = 256 << 10


def as_text(bundle: BundleManifest, read_blob: ReadBlob, experiment_id: int) -> str:
    """Return cells, then files, each below a line with its name; many or large files as a list with sizes."""
    program = bundle.program
    parts = [f"{CELL} {title}\n{source.rstrip()}" for _, title, source in _cells(bundle)]
    if program.kind != "cells":
        parts.append(f"{CELL} command\n{program.command_line}")
    small = [file for file in bundle.files if file.size <= LARGEST_TEXT]
    listed = len(small) > _MOST_FILES or sum(file.size for file in small) > _MOST_BYTES
    for file in () if listed else bundle.files:
        text = _text(file, read_blob)
        shown = f"({_size(file)}; det experiment code {experiment_id} --file {file.path})" if text is None else text
        parts.append(f"{CELL} {file.path}\n{shown.rstrip()}")
    if listed:
        lines = [f"{file.path}  {_size(file)}" for file in bundle.files]
        heading = f"{CELL} {len(lines)} files; det experiment code {experiment_id} --file PATH prints one"
        parts.append("\n".join([heading, *lines]))
    if bundle.links:
        lines = [f"{file.path}  {_size(file)}" for file in bundle.links]
        parts.append("\n".join([f"{CELL} files of the cluster's store of data", *lines]))
    if bundle.values:
        lines = [f"{value.name}  {value.size:,} bytes" for value in bundle.values]
        parts.append("\n".join([f"{CELL} values that were sent", *lines]))
    return "\n\n".join(parts)


def as_data(bundle: BundleManifest, read_blob: ReadBlob) -> dict[str, Any]:
    """Return the same for JSON; `text` is None for files that are no text or too large."""
    program = bundle.program
    files = [
        {"path": file.path, "size": file.size, "sha256": file.sha256, "text": _text(file, read_blob)}
        for file in bundle.files
    ]
    links = [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in bundle.links]
    values = [{"name": value.name, "size": value.size, "sha256": value.sha256} for value in bundle.values]
    return {
        "cells": [_cell(*each) for each in _cells(bundle)],
        "command": list(program.command),
        "files": files,
        "links": links,
        "values": values,
    }


def cells_numbered(bundle: BundleManifest, number: int, experiment_id: int) -> list[dict[str, Any]]:
    """Return the cells with this number in their brackets.

    Raises
    ------
    NotFoundError
        If there is none.
    """
    if bundle.program.kind != "cells":
        raise NotFoundError(f"Experiment {experiment_id} has no cells: its program is a {bundle.program.kind}.")
    cells = _cells(bundle)
    found = [_cell(*each) for each in cells if each[0] == number]
    if not found:
        numbers = _listed([str(each[0]) for each in cells if each[0] is not None]) or "none with a number"
        raise NotFoundError(f"Experiment {experiment_id} has no cell {number}; it has: {numbers}.")
    return found


def file_of(bundle: BundleManifest, read_blob: ReadBlob, path: str, experiment_id: int) -> bytes:
    """Return the content of a file.

    Raises
    ------
    NotFoundError
        If there is no such file, or only the cluster's store of data has it.
    """
    path = path.removeprefix("./")
    for file in bundle.files:
        if file.path == path:
            return read_blob(file.sha256)
    if any(file.path == path for file in bundle.links):
        raise NotFoundError(
            f"{path} of experiment {experiment_id} lies in the cluster's store of data: see `det data list`."
        )
    names = _listed([file.path for file in bundle.files]) or "none"
    raise NotFoundError(f"Experiment {experiment_id} has no file {path!r}; it has: {names}.")


def file_as_data(path: str, content: bytes) -> dict[str, Any]:
    """Return a file for JSON; `text` is None if it is no text."""
    return {"path": path.removeprefix("./"), "size": len(content), "text": text_of(content)}


def _cells(bundle: BundleManifest) -> list[tuple[int | None, str, str]]:
    program = bundle.program
    return [(each.number, program.title(index), each.source) for index, each in enumerate(program.cells)]


def _cell(number: int | None, title: str, source: str) -> dict[str, Any]:
    return {"number": number, "title": title, "source": source}


def _text(file: FileEntry, read_blob: ReadBlob) -> str | None:
    return text_of(read_blob(file.sha256)) if file.size <= LARGEST_TEXT else None


def _size(file: FileEntry) -> str:
    return f"{file.size:,} bytes"


def _listed(names: Sequence[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""An experiment's program as a runnable notebook: what ran, in order, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from det_native.errors import ArgumentError, BundleCorruptError
from det_native.schema.manifests import BundleManifest, Cell, FileEntry, ValueEntry

ReadBlob = Callable[[str], bytes]

_MOST_NAMES = 20
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def write_notebook(manifest: BundleManifest, read_blob: ReadBlob, path: Path, *, title: str) -> Path:
    """Write a bundle's program as a notebook.

    Parameters
    ----------
    read_blob : callable
        Returns a blob's content by its hash.
    path : Path
        The ``.ipynb`` file. Values go into ``<stem>_values/`` beside it, files of the bundle beside it; those that
        exist with another content stay, with a warning.
    title : str
        Heading of the notebook.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    ArgumentError
        If the path does not end in ``.ipynb`` or there is such a file.
    BundleCorruptError
        If a blob does not match its hash, or a path leaves the folder.
    """
    if path.suffix != ".ipynb":
        raise ArgumentError(f"{path} must end in .ipynb.")
    if path.exists():
        raise ArgumentError(f"{path} exists; give notebook() a file that does not.")
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [entry.path for entry in manifest.files if not _restore(entry, read_blob, path.parent)]
    if kept:
        warnings.warn(
            f"These files differ from what was sent and were left as they are: {', '.join(kept)}.", stacklevel=3
        )
    if manifest.links:
        warnings.warn(_linked(manifest), stacklevel=3)
    values = path.parent / f"{path.stem}_values"
    for number, value in enumerate(manifest.values):
        _write_value(value, number, read_blob, values)
    cells = [_markdown(title, manifest, kept, values.name), *_code_cells(manifest, values.name)]
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": manifest.interpreter.python},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _code_cells(manifest: BundleManifest, folder: str) -> Iterator[dict[str, Any]]:
    program = manifest.program
    if program.kind == "script":
        if manifest.values:
            yield _code("values", _loading(manifest.values, range(len(manifest.values)), folder))
        yield _code("script", f"%run {shlex.join(program.command)}")
        return
    if program.kind == "command":
        yield _code("command", f"!{program.command_line}")
        return
    used: set[str] = set()
    for index, cell in enumerate(program.cells):
        numbers = [number for number, value in enumerate(manifest.values) if value.before_cell == index]
        if numbers:
            yield _code(f"values-{index}", _loading(manifest.values, numbers, folder))
        yield _code(_cell_id(cell, index, used), cell.source)


def _loading(values: Sequence[ValueEntry], numbers: Sequence[int], folder: str) -> str:
    lines = ["# Values that were sent with the experiment.", "import pathlib", "import det_native.heap.values", ""]
    together: dict[str, dict[str, bool]] = {}
    files: dict[str, str] = {}
    for number in numbers:
        value = values[number]
        together.setdefault(value.sha256, {})[value.name] = value.in_place
        files.setdefault(value.sha256, json.dumps(f"{folder}/{_file_name(value, number)}", ensure_ascii=False))
    for sha256, wanted in together.items():
        content = f"pathlib.Path({files[sha256]}).read_bytes()"
        lines.append(f"det_native.heap.values.put_values({content}, globals(), {wanted})")
    return "\n".join(lines)


def _write_value(value: ValueEntry, number: int, read_blob: ReadBlob, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / _file_name(value, number)).write_bytes(_verified(read_blob, value.sha256, value.name))


def _file_name(value: ValueEntry, number: int) -> str:
    """Return a name that is unique where file names do not tell capitals apart, too."""
    return f"{number}_{value.name}.pkl"


def _restore(entry: FileEntry, read_blob: ReadBlob, folder: Path) -> bool:
    """Write a file of the bundle if it is not there; return False if another content is."""
    parts = PurePosixPath(entry.path).parts
    if not parts or entry.path.startswith("/") or "\\" in entry.path or any(part in (".", "..") for part in parts):
        raise BundleCorruptError(f"The bundle's path {entry.path!r} leaves the folder.")
    target = folder.joinpath(*parts)
    if target.exists():
        return target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == entry.sha256
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_verified(read_blob, entry.sha256, entry.path))
    target.chmod(entry.mode & 0o777)
    return True


def _verified(read_blob: ReadBlob, sha256: str, what: str) -> bytes:
    content = read_blob(sha256)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BundleCorruptError(f"{what} does not match its recorded hash.")
    return content


def _markdown(title: str, manifest: BundleManifest, kept: Sequence[str], values: str) -> dict[str, Any]:
    """Return the first cell: what the program is, and the files that it has or needs beside it."""
    lines = [f"# {title}", "", f"Python {manifest.interpreter.python}, bundle `{manifest.id[:12]}`."]
    if manifest.requirements:
        lines += ["", "Requirements: " + ", ".join(f"`{requirement}`" for requirement in manifest.requirements)]
    beside = [entry.path for entry in manifest.files if entry.path not in kept]
    if beside:
        lines += ["", f"Files that were sent, beside this notebook: {_names(beside)}."]
    if kept:
        lines += ["", f"Files that were here with another content, and were left as they are: {_names(kept)}."]
    if manifest.values:
        lines += ["", f"Values that were sent: in `{values}/`."]
    for sentence in _absent(manifest):
        lines += ["", sentence]
    return {"cell_type": "markdown", "id": "det-title", "metadata": {}, "source": "\n".join(lines)}


def _absent(manifest: BundleManifest) -> list[str]:
    """Return sentences on what the program uses and nothing writes beside the notebook."""
    found = [_linked(manifest)] if manifest.links else []
    reads = list(dict.fromkeys(read.path for read in manifest.reads))
    if reads:
        found.append(f"Paths that the workers have are read: {_names(reads)}.")
    weights = list(dict.fromkeys(earlier.checkpoint for earlier in manifest.program.earlier))
    if weights:
        found.append(f"Earlier trainings train again here; the experiment had their checkpoints {_names(weights)}.")
    return found


def _linked(manifest: BundleManifest) -> str:
    paths = [entry.path for entry in manifest.links]
    return f"Files of the cluster's store of data are not beside the notebook: {_names(paths)}."


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMES]) + more


def _code(cell_id: str, source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": cell_id,
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": source,
    }


def _cell_id(cell: Cell, index: int, used: set[str]) -> str:
    wanted = cell.cell_id or ""
    chosen = wanted if _CELL_ID.fullmatch(wanted) and wanted not in used else f"det-{index}"
    used.add(chosen)
    return chosen

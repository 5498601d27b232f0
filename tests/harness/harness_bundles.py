"""Small bundles for the tests of the harness: cells, scripts, values and files, in a blob store."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from det_native import PROTOCOL
from det_native.capture.carry import pack
from det_native.schema.manifests import (
    BundleManifest,
    CallSite,
    Cell,
    FileEntry,
    Framework,
    Interpreter,
    Program,
    ValueEntry,
)
from det_native.storage.blobs import BlobStore

MARK = "# <- call"


def cell(number: int | None, source: str) -> Cell:
    return Cell(number=number, cell_id=None, source=source)


def call_in(cells: Sequence[Cell], occurrence: int = 1, kind: Any = "create") -> CallSite:
    """Return the place of the call in the line that ends with ``# <- call``."""
    for index, one in enumerate(cells):
        for line, text in enumerate(one.source.splitlines(), 1):
            if text.endswith(MARK):
                column = text.index("train(")
                return CallSite(kind=kind, cell=index, line=line, column=column, occurrence=occurrence)
    raise AssertionError("no line is marked as the call")


def make_bundle(
    blobs: BlobStore,
    cells: Sequence[Cell] = (),
    *,
    call: CallSite | None = None,
    values: Sequence[tuple[str, int, Any]] = (),
    files: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    framework: Framework = "torch",
    python: str | None = None,
    protocol: int = PROTOCOL,
) -> BundleManifest:
    """Store the blobs and return the manifest; `values` are (name, before_cell, value)."""
    return BundleManifest(
        protocol=protocol,
        interpreter=Interpreter(python=python or platform.python_version(), executable=sys.executable),
        program=Program(
            kind="script" if command else "cells",
            framework=framework,
            cells=tuple(cells),
            command=tuple(command),
            call=call,
        ),
        values=tuple(
            ValueEntry(name=name, before_cell=before, **_blob(blobs, _pickled(name, value)))
            for name, before, value in values
        ),
        files=tuple(FileEntry(path=path, **_blob(blobs, text.encode())) for path, text in (files or {}).items()),
    )


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)


def _pickled(name: str, value: Any) -> bytes:
    return pack([name], {name: value}, checked=True).content


def _blob(blobs: BlobStore, content: bytes) -> dict[str, Any]:
    sha256 = hashlib.sha256(content).hexdigest()
    blobs.put(sha256, content)
    return {"sha256": sha256, "size": len(content)}

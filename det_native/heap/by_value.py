"""What some roots lead to as bytes, by value: a process that has made something else can take it from there."""

from __future__ import annotations

import io
import os
import pickle
import sys
import types
from collections.abc import Callable, Collection
from typing import Any

from det_native.heap.compare import Table
from det_native.heap.edges import KEPT, Kind, Missing, kind_of
from det_native.heap.kinds.functions import READS
from det_native.heap.packing import Output
from det_native.heap.pickling import HeapPickler, path_elsewhere
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack
from det_native.heap.undo import size_of
from det_native.heap.unpacking import HeapUnpickler

_LARGE = 64 << 10
TOO_LARGE = "too large"


def pack_roots(table: Table, limit: int, *, folder: str) -> bytes:
    """Return the roots of a table, and the variables that functions read, as bytes.

    The largest arrays are left out until the others are within the limit, and so are secrets; nothing is returned if
    that is not enough.

    Parameters
    ----------
    table : Table
    limit : int
        Bytes, of all together.
    folder : str
        The folder of the user's files: its paths are those of the reader's working directory.
    """
    snapshot = table.snapshot
    functions = [
        (number, obj)
        for number, obj in enumerate(snapshot.objects)
        if isinstance(obj, types.FunctionType) and obj.__module__ == "__main__"
    ]
    names = {
        label[1]: child
        for number, _ in functions
        for label, child in zip(snapshot.facts[number], snapshot.children[number], strict=True)
        if type(label) is tuple and label[0] == READS
    }
    output = Output(limit)
    pickler = _Pickler(output, {id(obj) for obj in _largest(snapshot, limit)}, table.secrets, folder)
    pickler.namespaces = {id(function.__globals__) for _, function in functions}
    run_with_deep_stack(lambda: pickler.dump_all((table.given, names)))
    return pickle.dumps((sys.version_info[:2], pickler.ways, output.parts), protocol=5) if output.parts else b""


def unpack_roots(data: bytes, place: Callable[[str], str] = str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the roots that :func:`pack_roots` has packed, and names which functions of theirs read.

    Code of another version of Python is left out. `place` gives the path that is used here instead of one elsewhere.
    """
    python, ways, parts = pickle.loads(data)
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    snapshot = Snapshot({"namespace": (names, KEPT)})
    unpickler = _Unpickler(io.BytesIO(b"".join(parts)), snapshot, reopen=False)
    unpickler.place = place
    unpickler.reads_code = python == sys.version_info[:2]
    unpickler.follow(ways, exact=True, exact_there=True)
    given, read = run_with_deep_stack(unpickler.load_all)
    names.update(read)
    return given, names


def _largest(snapshot: Snapshot, limit: int) -> list[Any]:
    """Return the objects whose content is left out so that the others are within a limit."""
    sizes = []
    for obj, kind in zip(snapshot.objects, snapshot.kinds, strict=True):
        if kind.is_whole or hasattr(type(obj), "nbytes"):
            try:
                sizes.append((size_of(obj), obj))
            except Exception:  # noqa: BLE001 (an object of the user's may raise anything)
                continue
    total, dropped = sum(size for size, _ in sizes), []
    for size, obj in sorted(sizes, key=lambda pair: -pair[0]):
        if total <= limit:
            break
        total -= size
        dropped.append(obj)
    return dropped


class _Pickler(HeapPickler):
    """Pickles by value everything but the names of the program."""

    def __init__(self, output: Output, dropped: Collection[int], secrets: Collection[str], folder: str) -> None:
        super().__init__(output, Snapshot({"namespace": ({}, KEPT)}), (), exact=True, reopen=None)
        #: Identities of the names of the program.
        self.namespaces: set[int] = set()
        self._folder = f"{folder}{os.sep}"
        self._dropped, self._secrets = dropped, secrets

    def persistent_id(self, obj: Any) -> Any:
        if id(obj) in self._dropped:
            return "missing", TOO_LARGE
        if type(obj) is dict and id(obj) in self.namespaces:
            return "at", self.way(1)
        if type(obj) is str and obj in self._secrets:
            return "missing", "secret"
        if type(obj) is str and obj.startswith(("/", "~/")) and not obj.startswith(self._folder):
            return path_elsewhere(obj)
        reference = super().persistent_id(obj)
        # What belongs to its process stays as it is there.
        return ("missing", kind_of(obj).stays) if reference == ("none", "") else reference

    def reduced_by_kind(self, obj: Any, kind: Kind) -> Any:
        return getattr(kind, "reduced_alone", kind.reduce)(obj)


class _Unpickler(HeapUnpickler):
    reads_code = True
    place: Callable[[str], str] = staticmethod(str)

    def persistent_load(self, reference: Any) -> Any:
        return self.place(reference[1][1:]) if reference[0] == "path" else super().persistent_load(reference)

    def make(self, function: Any, *arguments: Any) -> Any:
        if function is types.CodeType and not self.reads_code:
            return Missing("code of another version of Python")
        return super().make(function, *arguments)

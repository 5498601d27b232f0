"""The notebook's own names and moments, put in place of those that the worker has made by its clock or by entropy."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from det_native.heap.clock_texts import exchanges, is_same_shape
from det_native.heap.clock_values import Slot, read, slots_of, written
from det_native.schema.proof import CallProof
from det_native.storage.paths import safe_join

_MOST_FOLDERS = 10_000
_HOST = "\0host"


def put_clock_values(proof: CallProof, payload: Any) -> list[tuple[Slot, Any]]:
    """Put them in place, and rename what the program has made under its own names; return the places and new values.

    Parameters
    ----------
    proof : CallProof
        Has the notebook's values.
    payload : FitCall or TorchCall
        The call, which is being made.
    """
    noted = {value.path: value for value in proof.clock_values}
    folder = os.getcwd()
    changed: list[tuple[Slot, Any]] = []
    renamed: dict[str, str] = {}
    for slot in list(slots_of(payload)) if noted else ():
        there = noted.get(slot.path)
        here = written(slot.value, folder) if there is not None else None
        if there is None or here is None or here[0] != there.kind or here[1] == there.text:
            continue
        if there.kind in ("str", "path"):
            pair = here[1].replace(socket.gethostname(), _HOST), there.text.replace(proof.host or _HOST, _HOST)
            if not is_same_shape(*pair):
                continue
            renamed |= exchanges(*pair)
        elif there.kind == "int" and len(here[1]) != len(there.text):
            continue
        elif there.kind == "int":
            renamed[here[1]] = there.text
        with suppress(Exception):  # a class of the user's that takes no other value
            value = read(there.text, slot.value, folder)
            slot.put(value)
            changed.append((slot, value))
    _rename_entries(folder, {old: new for old, new in renamed.items() if _HOST not in old})
    for value in noted.values():
        if value.folder:  # a value that travelled names one that only the notebook has made
            with suppress(OSError):
                os.makedirs(safe_join(Path(folder), value.folder), exist_ok=True)
    return changed


def _rename_entries(folder: str, names: dict[str, str]) -> None:
    """Rename the files and folders in the working directory that have a worker's name.

    Whoever holds the old name of a folder comes to the new one by a link.
    """
    walked = islice(os.walk(folder, topdown=False), _MOST_FOLDERS) if names else ()
    for root, folders, files in walked:
        for name in (*folders, *files):
            after = name
            for old, new in names.items():
                after = after.replace(old, new)
            if after != name and not os.path.islink(os.path.join(root, name)):
                with suppress(OSError):
                    _move(os.path.join(root, name), os.path.join(root, after))


def _move(path: str, target: str) -> None:
    """Give a file or folder another name; a folder that is there already takes what is in it."""
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(path):
            _move(os.path.join(path, name), os.path.join(target, name))
        os.rmdir(path)
        os.symlink(os.path.basename(target), path)
    elif not os.path.lexists(target):
        os.rename(path, target)

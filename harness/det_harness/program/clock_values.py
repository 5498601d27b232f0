"""The notebook's own names and moments, put in place of those that the worker has made by its clock or by entropy."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from det_native.heap.clock_texts import exchanges, is_same_shape
from det_native.heap.clock_values import Slot, is_drawn, slots_of_program
from det_native.storage.paths import safe_join

_MOST_FOLDERS = 10_000
_HOST = "\0host"


def put_clock_values(noted: Mapping[str, Any], folders: Iterable[str], host: str) -> list[tuple[Slot, Any]]:
    """Put them in place, and rename what the program has made under its own names; return the places and new values.

    Parameters
    ----------
    noted : mapping of str to object
        The notebook's values, by what leads to them.
    folders : iterable of str
        Those of the notebook that they name, relative to its own.
    host : str
        The name of the notebook's machine.
    """
    folder = os.getcwd()
    changed: list[tuple[Slot, Any]] = []
    renamed: dict[str, str] = {}
    for slot in [*slots_of_program()] if noted else ():
        here, there = slot.value, noted.get(slot.path)
        if type(there) is not type(here) or there == here or not is_drawn(here, folder):
            continue
        if isinstance(here, str | PurePath):
            pair = str(here).replace(socket.gethostname(), _HOST), str(there).replace(host or _HOST, _HOST)
            if not is_same_shape(*pair):
                continue
            renamed |= exchanges(*pair)
        elif type(here) is int:
            if len(str(here)) != len(str(there)):
                continue
            renamed[str(here)] = str(there)
        with suppress(Exception):  # a class of the user's that takes no other value
            slot.put(there)
            changed.append((slot, there))
    _rename_entries(folder, {old: new for old, new in renamed.items() if _HOST not in old})
    for name in folders:  # a value that travelled names one that only the notebook has made
        with suppress(OSError):
            os.makedirs(safe_join(Path(folder), name), exist_ok=True)
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

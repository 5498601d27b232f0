"""The notebook's texts, paths and moments in place of the worker's, and files under the notebook's names.

A worker runs the cells later, elsewhere: what they make of a clock, of entropy or of their machine is another one.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from typing import Any

from det_native.heap.slots import FOLDER, Slot, slots_of_program
from det_native.heap.texts import Texts

_MOST_FOLDERS = 10_000


def put_notebooks_texts(noted: Mapping[str, Any], sent: Collection[str]) -> list[tuple[Slot, Any]]:
    """Put them in place, and rename what the program has made under its own names; return the places and new values.

    Parameters
    ----------
    noted : mapping of str to object
        The notebook's values, by what leads to them, and its folder, which is the working directory here.
    sent : collection of str
        Files of the working directory that have come from the notebook, which keep their names.
    """
    folder = os.getcwd()
    texts, environment = Texts(folder), frozenset(os.environ.values())
    changed: list[tuple[Slot, Any]] = []
    renamed: dict[str, str] = {}
    for slot in [*slots_of_program()] if noted else ():
        here, there = slot.value, _within(folder, noted.get(slot.path), noted.get(FOLDER, ""))
        if type(there) is not type(here) or texts.of(there) == texts.of(here) or str(here) in environment:
            continue
        if _is_of_another_machine(there, folder):
            continue
        if not slot.is_own and not os.path.lexists(str(here)):
            continue  # a library's own text
        with suppress(Exception):  # a class of the user's that takes no other value
            slot.put(there)
            changed.append((slot, there))
            renamed.update(_names(here, there))
    # One that both sides have, in another place, names what both sides have.
    on_both_sides = renamed.keys() & {*renamed.values()}
    renamed = {mine: other for mine, other in renamed.items() if on_both_sides.isdisjoint((mine, other))}
    _rename_entries(folder, renamed, sent)
    return changed


def _within(folder: str, value: Any, origin: str) -> Any:
    """Return a text or path of the notebook with the working directory in place of the notebook's folder."""
    if not isinstance(value, str | PurePath) or origin in ("", os.sep):
        return value
    return type(value)(re.sub(rf"{re.escape(origin)}(?![\w.-])", lambda _: folder, str(value)))


def _is_of_another_machine(value: Any, folder: str) -> bool:
    """Whether a path leads out of the working directory to what only the notebook's machine has."""
    path = str(value) if isinstance(value, str | PurePath) else ""
    is_within = path == folder or path.startswith(f"{folder}{os.sep}")
    return os.path.isabs(path) and "\n" not in path and not is_within and not os.path.lexists(path)


def _names(here: Any, there: Any) -> Iterator[tuple[str, str]]:
    """Yield the names in two paths that differ, side by side."""
    is_path = isinstance(here, str | PurePath)
    pairs = zip(str(here).split(os.sep), str(there).split(os.sep), strict=False)
    if is_path and str(here).count(os.sep) == str(there).count(os.sep):
        yield from ((mine, other) for mine, other in pairs if mine != other and mine.strip(".") and other.strip("."))
    elif type(here) in (int, uuid.UUID):
        yield str(here), str(there)


def _rename_entries(folder: str, names: Mapping[str, str], sent: Collection[str]) -> None:
    """Rename the files and folders in the working directory that have a worker's name, and that cells have made.

    Whoever holds the old name of a folder comes to the new one by a link.
    """
    if not names:
        return
    pattern = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(map(re.escape, names))})(?![0-9A-Za-z])")
    kept = {os.path.join(folder, part) for path in sent for part in (path, *map(str, PurePath(path).parents))}
    for root, folders, files in islice(os.walk(folder, topdown=False), _MOST_FOLDERS):
        for name in (*folders, *files):
            path, after = os.path.join(root, name), pattern.sub(lambda match: names[match[0]], name)
            target = os.path.join(root, after)
            if after != name and path not in kept and not os.path.islink(path) and not _has_files(target):
                with suppress(OSError):
                    _move(path, target)


def _has_files(path: str) -> bool:
    """Whether a path leads to a file, or to a folder with files in it."""
    return any(files for _, _, files in os.walk(path)) if os.path.isdir(path) else os.path.lexists(path)


def _move(path: str, target: str) -> None:
    """Give a file or folder another name; an empty folder that is there already takes what is in it."""
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(path):
            _move(os.path.join(path, name), os.path.join(target, name))
        os.rmdir(path)
        os.symlink(os.path.basename(target), path)
    else:
        os.rename(path, target)

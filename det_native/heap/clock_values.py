"""Values that a program may have made from a clock or from entropy, by the names that lead to them.

The notebook notes them, and a worker, which has run the same cells later, puts the notebook's in place of its own: so
``log_dir = "logs/" + datetime.now().strftime(...)`` is one folder here and there.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import operator
import os
import pathlib
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from det_native.heap import kinds as _kinds  # noqa: F401 (fills the table)
from det_native.heap.clock_texts import may_differ
from det_native.heap.clock_times import is_own_value
from det_native.heap.edges import NamedKind, kind_of
from det_native.heap.names import FRAME, NAMESPACE, ROOTS
from det_native.heap.ownership import is_users, is_users_module
from det_native.heap.roots import roots_of_call

#: Stands for the notebook's folder, and for the worker's working directory, at the beginning of a text.
FOLDER = "\0folder"
LONGEST = 500
_DEPTH = 2
_MOST_PARTS = 200  # of one container
_MOST_SLOTS = 50_000
_MOST_NAMES = 10_000
_LEAST_NUMBER = 10**8
# Between these lie identities of objects, which are the process's own.
_LARGEST_DRAWN, _LEAST_DRAWN_OF_MANY_BITS = 2**40, 2**64
_TEXTS = (str, pathlib.PurePath)
_PLAIN = (*_TEXTS, int, uuid.UUID, datetime.date)
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)


@dataclass(frozen=True)
class Slot:
    """A place that holds a value: a variable, an item or an attribute.

    Attributes
    ----------
    path : str
        As code writes it: ``args.run_dir``.
    name : str
        Of the variable that leads there.
    value : object
    put : callable
        Gives the place another value.
    """

    path: str
    name: str
    value: Any
    put: Callable[[Any], object] = lambda value: None


def slots_of(payload: Any) -> Iterator[Slot]:
    """Yield the places of the program, and of what its call is given, that hold a text, a path, a moment or a number.

    Parameters
    ----------
    payload : FitCall or TorchCall
        The call, which is being made: the functions around it are looked at, too.
    """
    namespace, frames = roots_of_call(sys._getframe(1))
    roots = list(islice(_named(NAMESPACE, namespace, ""), _MOST_NAMES))
    for frame in frames:
        roots += _named(FRAME, frame, f"{frame.f_code.co_name}() ")
    callbacks = getattr(payload, "callbacks", ())
    for number, callback in enumerate(callbacks() if callable(callbacks) else callbacks):
        roots.append(Slot(f"{type(callback).__name__} (callback {number + 1})", "", callback))
    # Plain values first: of large containers only a part is looked at.
    roots.sort(key=lambda slot: type(slot.value) is not str)
    return islice((slot for root in roots for slot in _within(root)), _MOST_SLOTS)


def drawn_values(
    payload: Any, folder: pathlib.Path, is_secret: Callable[[str, str], bool]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield each value that a clock or entropy may have made: the way to it, its kind, its text, and its folder.

    That is the one that a path leads to, or its parent; relative to the user's `folder`, empty if it is not in that.
    """
    environment = frozenset(os.environ.values())
    for slot in slots_of(payload):
        found = written(slot.value, str(folder))
        if found is not None and slot.value not in environment and not is_secret(found[1], slot.path):
            yield slot.path, *found, _folder_of(str(slot.value), folder) if isinstance(slot.value, _TEXTS) else ""


def _folder_of(path: str, folder: pathlib.Path) -> str:
    places = (pathlib.Path(place).resolve() for place in (path, os.path.dirname(path)) if os.path.isdir(place))
    place = next(places, folder)
    return place.relative_to(folder).as_posix() if folder in place.parents else ""


def written(value: Any, folder: str) -> tuple[str, str] | None:
    """Return the kind of a value and its text; None if no clock and no entropy has made it.

    Parameters
    ----------
    value : object
    folder : str
        What `FOLDER` stands for.
    """
    kind, text = type(value).__name__, str(value)
    if isinstance(value, pathlib.PurePath) or type(value) is str:
        text = FOLDER + text[len(folder) :] if f"{text}/".startswith(f"{folder}/") else text
        kind, drawn = "str" if type(value) is str else "path", len(text) <= LONGEST and may_differ(text)
    elif type(value) is int:
        drawn = value >= _LEAST_NUMBER and (
            value < _LARGEST_DRAWN or value >= _LEAST_DRAWN_OF_MANY_BITS or is_own_value(value)
        )
    else:
        drawn = type(value) in (datetime.datetime, datetime.date, uuid.UUID) and is_own_value(value)
    return (kind.lower(), text) if drawn else None


def read(text: str, like: Any, folder: str) -> Any:
    """Return a value from the text that :func:`written` gives, with the class of another one."""
    make = getattr(type(like), "fromisoformat", type(like))
    return make(folder + text.removeprefix(FOLDER) if text.startswith(FOLDER) else text)


def _within(slot: Slot, depth: int = 0) -> Iterator[Slot]:
    with contextlib.suppress(Exception):  # an object of the user's may raise anything when it is looked at
        if isinstance(slot.value, _PLAIN):
            yield slot
        elif depth < _DEPTH:
            for part in islice(_parts(slot), _MOST_PARTS):
                yield from _within(part, depth + 1)


def _parts(slot: Slot) -> Iterator[Slot]:
    value, kind = slot.value, kind_of(slot.value)
    if type(value) in (dict, list):
        for key, part in list(value.items() if type(value) is dict else enumerate(value)):
            if type(key) in (str, int):
                yield Slot(f"{slot.path}[{key!r}]", slot.name, part, partial(operator.setitem, value, key))
    elif isinstance(value, types.ModuleType) and not is_users_module(value.__name__):
        return
    elif not isinstance(value, types.FunctionType):
        named: tuple[NamedKind, Any] = (
            (kind, value) if isinstance(kind, NamedKind) else (ROOTS, getattr(value, "__dict__", {}))
        )
        is_own = isinstance(value, (*_NAMESPACES, type, types.ModuleType)) or is_users(type(value))
        for part in _named(*named, f"{slot.path}.", slot.name):
            # Of a library's object, numbers and objects are its own affair.
            if is_own or (isinstance(part.value, _TEXTS) and not part.path.startswith(f"{slot.path}._")):
                yield part


def _named(kind: NamedKind, holder: Any, prefix: str, variable: str = "") -> Iterator[Slot]:
    for name, value in dict(kind.read(holder)).items():
        if isinstance(name, str) and not name.startswith("__"):
            put = partial(_bind, kind, holder, name)
            yield Slot(f"{prefix}{name}", variable or name, value, put)


def _bind(kind: NamedKind, holder: Any, name: str, value: Any) -> None:
    kind.write(holder, {name: value}, ())

"""Values that a program may have made from a clock or from entropy, by the names that lead to them.

The notebook notes them, and a worker, which has run the same cells later, puts the notebook's in place of its own: so
``log_dir = "logs/" + datetime.now().strftime(...)`` is one folder here and there.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import enum
import sys
import types
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any

from det_native.inspection.attributes import is_own_module
from det_native.proof.clock_texts import may_differ
from det_native.proof.own_values import is_own_value, is_path

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
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
_OF_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython"})


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
    holder : object
        A dictionary, a list, a class or a running function; None if its value stays.
    key : object
        Of the place in its holder.
    """

    path: str
    name: str
    value: Any
    holder: Any = None
    key: Any = None

    def put(self, value: Any) -> None:
        """Give the place another value."""
        if isinstance(self.holder, FrameType):
            variables: Any = self.holder.f_locals
            variables[self.key] = value
            if sys.version_info < (3, 13):
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(self.holder), ctypes.c_int(0))
        elif isinstance(self.holder, type):
            setattr(self.holder, self.key, value)
        elif self.holder is not None:
            self.holder[self.key] = value


def slots_of(payload: Any) -> Iterator[Slot]:
    """Yield the places of the program, and of what its call is given, that hold a text, a path, a moment or a number.

    Parameters
    ----------
    payload : FitCall or TorchCall
        The call, which is being made: the functions around it are looked at, too.
    """
    # Plain values first: of large containers only a part is looked at.
    roots = sorted(_roots(payload), key=lambda slot: type(slot.value) is not str)
    return islice((slot for root in roots for slot in _within(root)), _MOST_SLOTS)


def written(value: Any, folder: str) -> tuple[str, str] | None:
    """Return the kind of a value and its text; None if no clock and no entropy has made it.

    Parameters
    ----------
    value : object
    folder : str
        What `FOLDER` stands for.
    """
    kind = type(value)
    if kind is str or is_path(value):
        text = str(value)
        portable = FOLDER + text[len(folder) :] if f"{text}/".startswith(f"{folder}/") else text
        drawn = len(text) <= LONGEST and may_differ(portable)
        return ("str" if kind is str else "path", portable) if drawn else None
    if kind is int:
        return ("int", str(value)) if _is_drawn_number(value) else None
    if kind in (datetime.datetime, datetime.date):
        return (kind.__name__, value.isoformat()) if is_own_value(value) else None
    return ("uuid", str(value)) if kind is uuid.UUID else None


def read(kind: str, text: str, like: Any, folder: str) -> Any:
    """Return a value from what :func:`written` gives, with the class of another one."""
    if kind in ("str", "path"):
        return type(like)(folder + text[len(FOLDER) :] if text.startswith(FOLDER) else text)
    if kind in ("datetime", "date"):
        return type(like).fromisoformat(text)
    return type(like)(text)


def _is_drawn_number(value: int) -> bool:
    if value < _LEAST_NUMBER:
        return False
    return value < _LARGEST_DRAWN or value >= _LEAST_DRAWN_OF_MANY_BITS or is_own_value(value)


def _roots(payload: Any) -> Iterator[Slot]:
    names = vars(sys.modules["__main__"])
    yield from _names(names, "", names)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_locals is not frame.f_globals and is_own_module(str(frame.f_globals.get("__name__", ""))):
            for name, value in dict(frame.f_locals).items():
                yield Slot(f"{frame.f_code.co_name}() {name}", name, value, frame, name)
        frame = frame.f_back
    callbacks = getattr(payload, "callbacks", ())
    for number, callback in enumerate(callbacks() if callable(callbacks) else callbacks):
        yield Slot(f"{type(callback).__name__} (callback {number + 1})", "", callback)


def _within(slot: Slot, depth: int = 0) -> Iterator[Slot]:
    with contextlib.suppress(Exception):  # an object of the user's may raise anything when it is looked at
        if isinstance(slot.value, str | int | uuid.UUID | datetime.date) or is_path(slot.value):
            yield slot
        elif depth < _DEPTH:
            for part in list(_parts(slot)):
                yield from _within(part, depth + 1)


def _parts(slot: Slot) -> Iterator[Slot]:
    value, kind, path = slot.value, type(slot.value), slot.path
    if kind is dict or kind is list:
        items = list(value.items() if kind is dict else enumerate(value))[:_MOST_PARTS]
        for key, part in items:
            if type(key) in (str, int):
                yield Slot(f"{path}[{key!r}]", slot.name, part, value, key)
    elif isinstance(value, types.ModuleType | type):
        module = value.__module__ if isinstance(value, type) else value.__name__
        if is_own_module(module) and not (isinstance(value, type) and issubclass(value, enum.Enum)):
            yield from _names(vars(value), f"{path}.", value if isinstance(value, type) else vars(value))
    elif not isinstance(value, types.FunctionType) and isinstance(attributes := getattr(value, "__dict__", None), dict):
        of_library = not (isinstance(value, _NAMESPACES) or is_own_module(kind.__module__))
        for name, part in list(attributes.items())[:_MOST_PARTS]:
            # Of a library's object, numbers and objects are its own affair.
            if type(name) is str and not (
                of_library and (name[:1] == "_" or not (isinstance(part, str) or is_path(part)))
            ):
                yield Slot(f"{path}.{name}", slot.name, part, attributes, name)


def _names(names: Mapping[str, Any], prefix: str, holder: Any) -> Iterator[Slot]:
    for name, value in list(names.items())[:_MOST_NAMES]:
        if name not in _OF_IPYTHON and not name.startswith("__") and not (name[:1] == "_" and name[1:].isdigit()):
            yield Slot(f"{prefix}{name}", name, value, holder, name)

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    put : callable
        Gives the place another value.
    """

    path: str
    name: str
    value: Any
    put: Callable[[Any], object]


def slots_of(payload: Any) -> Iterator[Slot]:
    """Yield the places of the program, and of what its call is given, that hold a text, a path, a moment or a number.

    Parameters
    ----------
    payload : FitCall or TorchCall
        The call, which is being made: the functions around it are looked at, too.
    """
    for count, slot in enumerate(_slots(payload)):
        if count == _MOST_SLOTS:
            return
        yield slot


def _slots(payload: Any) -> Iterator[Slot]:
    # Plain values first: of large containers only a part is looked at.
    for root in sorted(_roots(payload), key=lambda slot: type(slot.value) is not str):
        with contextlib.suppress(Exception):  # an object of the user's may raise anything when it is looked at
            yield from list(_within(root, 0))


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
    yield from _items(names, "", names)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_locals is not frame.f_globals and is_own_module(str(frame.f_globals.get("__name__", ""))):
            for name, value in dict(frame.f_locals).items():
                yield Slot(f"{frame.f_code.co_name}() {name}", name, value, _SetVariable(frame, name))
        frame = frame.f_back
    callbacks = getattr(payload, "callbacks", ())
    for number, callback in enumerate(callbacks() if callable(callbacks) else callbacks):
        path = f"{type(callback).__name__} (callback {number + 1})"
        yield Slot(path, "", callback, lambda value: None)


def _items(names: dict[str, Any], prefix: str, target: Any) -> Iterator[Slot]:
    put = target.__setitem__ if isinstance(target, dict) else None
    for name, value in list(names.items())[:_MOST_NAMES]:
        if name not in _OF_IPYTHON and not name.startswith("__") and not (name[:1] == "_" and name[1:].isdigit()):
            setter = _Set(put, name) if put is not None else _Set(_attribute_setter(target), name)
            yield Slot(f"{prefix}{name}", name, value, setter)


def _within(slot: Slot, depth: int) -> Iterator[Slot]:
    value = slot.value
    if isinstance(value, str | int | uuid.UUID | datetime.date) or is_path(value):
        yield slot
        return
    if depth == _DEPTH:
        return
    for part in _parts(slot):
        if _is_library_object(value) and not (isinstance(part.value, str) or is_path(part.value)):
            continue  # its numbers and objects are its own affair
        yield from _within(part, depth + 1)


def _parts(slot: Slot) -> Iterator[Slot]:
    value, path = slot.value, slot.path
    if type(value) is dict:
        for key, part in list(value.items())[:_MOST_PARTS]:
            if type(key) in (str, int):
                yield Slot(f"{path}[{key!r}]", slot.name, part, _Set(value.__setitem__, key))
    elif type(value) is list:
        for index, part in enumerate(value[:_MOST_PARTS]):
            yield Slot(f"{path}[{index}]", slot.name, part, _Set(value.__setitem__, index))
    elif isinstance(value, types.ModuleType):
        if is_own_module(value.__name__):
            yield from _items(vars(value), f"{path}.", vars(value))
    elif isinstance(value, type):
        if is_own_module(value.__module__) and not issubclass(value, enum.Enum):
            yield from _items(dict(vars(value)), f"{path}.", value)
    elif not isinstance(value, types.FunctionType):
        yield from _attributes(slot)


def _attributes(slot: Slot) -> Iterator[Slot]:
    attributes, public = getattr(slot.value, "__dict__", None), _is_library_object(slot.value)
    if not isinstance(attributes, dict):
        return
    for name, part in list(attributes.items())[:_MOST_PARTS]:
        if type(name) is str and not (public and name.startswith("_")):
            yield Slot(f"{slot.path}.{name}", slot.name, part, _Set(attributes.__setitem__, name))


def _is_library_object(value: Any) -> bool:
    """Whether a value is an object of a library, and no plain container or namespace."""
    kind = type(value)
    if isinstance(value, types.ModuleType | type) or kind in (dict, list):
        return False
    return not (isinstance(value, _NAMESPACES) or is_own_module(kind.__module__))


def _attribute_setter(target: Any) -> Callable[[str, Any], object]:
    return lambda name, value: setattr(target, name, value)


@dataclass(frozen=True)
class _Set:
    setter: Callable[[Any, Any], object]
    key: Any

    def __call__(self, value: Any) -> None:
        self.setter(self.key, value)


@dataclass(frozen=True)
class _SetVariable:
    """Sets a variable of a running function."""

    frame: FrameType
    name: str

    def __call__(self, value: Any) -> None:
        variables: Any = self.frame.f_locals
        variables[self.name] = value
        if sys.version_info < (3, 13):
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(self.frame), ctypes.c_int(0))

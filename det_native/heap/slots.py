"""Texts, paths, moments and large numbers of a program, by the names that lead to them.

The notebook notes them, and a worker, which has run the same cells later, puts the notebook's in place of its own: so
``log_dir = "logs/" + datetime.now().strftime(...)`` is one folder here and there.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
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
from det_native.heap.edges import Kind, NamedKind, kind_of
from det_native.heap.kinds.instances import attributes_of
from det_native.heap.names import FRAME, NAMESPACE, ROOTS
from det_native.heap.ownership import is_namespace, is_users
from det_native.heap.roots import roots_of_call

#: Where the folder of the user's files is noted; no name leads there.
FOLDER = ""
_LONGEST = 500  # characters
_DEPTH = 2
_MOST_PARTS = 200  # of one container
_MOST_SLOTS = 50_000
_MOST_NAMES = 10_000
# Smaller numbers may count something of the machine; between the others lie identities of objects.
_LEAST_NUMBER, _LARGEST_NUMBER, _LEAST_OF_MANY_BITS = 10**8, 2**40, 2**64
_TEXTS = (str, pathlib.PurePath)
_PLAIN = (*_TEXTS, int, uuid.UUID, datetime.date)
_CONTAINERS = (list, dict)
_OWN = (*_CONTAINERS, types.SimpleNamespace, argparse.Namespace, type, types.ModuleType)


@dataclass(frozen=True)
class Slot:
    """A place that holds a value: a variable, an item or an attribute.

    Attributes
    ----------
    path : str
        As code writes it: ``args.run_dir``.
    name : str
        Of the variable that leads there.
    put : callable
        Gives the place another value.
    is_own : bool
        Whether the user's code has put it there; else it is of an object of a library.
    """

    path: str
    name: str
    value: Any
    put: Callable[[Any], object]
    is_own: bool


def slots_of_program() -> Iterator[Slot]:
    """Yield the places of the program that hold a text, a path, a moment or a large number.

    The functions around the call, which is being made, are looked at, too.
    """
    namespace, frames = roots_of_call(sys._getframe(1))
    roots = [("", NAMESPACE, namespace), *((f"{frame.f_code.co_name}() ", FRAME, frame) for frame in frames)]
    return islice((slot for prefix, kind, holder in roots for slot in _within(kind, holder, prefix)), _MOST_SLOTS)


def _is_noted(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= _LONGEST
    if issubclass(type(value), int):
        large = _LEAST_NUMBER <= value < _LARGEST_NUMBER or value >= _LEAST_OF_MANY_BITS
        return type(value) is int and large
    return True


def _within(kind: Kind, holder: Any, path: str, name: str = "", depth: int = 0, *, own: bool = True) -> Iterator[Slot]:
    with contextlib.suppress(Exception):  # an object of the user's may raise anything when it is looked at
        children, facts = kind.read_state(holder)
        items = zip(kind.labels(holder, children, facts), children, strict=True)
        # Plain values first: of large containers only a part is looked at.
        parts = sorted(items, key=lambda item: not issubclass(type(item[1]), _PLAIN))
        for label, value in parts[: _MOST_PARTS if depth else _MOST_NAMES]:
            if type(label) not in (str, int) or f"{label}".startswith("__"):
                continue
            step, first = f"{path}{kind.step(label) if depth else label}", name or f"{label}"
            if issubclass(type(value), _PLAIN):
                # Of a library's object, numbers and objects are its own affair.
                is_public_text = issubclass(type(value), _TEXTS) and f"{label}"[0] != "_"
                if _is_noted(value) and (own or is_public_text):
                    yield Slot(step, first, value, partial(_put, kind, holder, label), own)
            elif own and depth < _DEPTH and type(value) is not types.FunctionType:
                inner, is_own = kind_of(value), issubclass(type(value), _OWN) or is_users(type(value))
                if not isinstance(inner, NamedKind) and type(value) not in _CONTAINERS:
                    inner, value = ROOTS, attributes_of(value)
                if not issubclass(type(value), types.ModuleType) or is_namespace(value):
                    yield from _within(inner, value, step, first, depth + 1, own=is_own)


def _put(kind: Kind, holder: Any, label: Any, value: Any) -> None:
    before = children, facts = kind.read_state(holder)
    labels = kind.labels(holder, children, facts)
    now = [value if other == label else child for other, child in zip(labels, children, strict=True)]
    kind.write_state(holder, *kind.difference(holder, before, (now, facts), lambda child: False))

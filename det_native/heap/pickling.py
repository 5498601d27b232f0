"""Pickles changed objects: those of the beginning by their address, new ones by value, guarded one by one."""

from __future__ import annotations

import os
import pathlib
import pickle
import types
from collections.abc import Callable, Collection, Sequence
from typing import Any

import cloudpickle

from det_native.heap.edges import ATOMS, VALUE, Left, kind_of
from det_native.heap.kinds.functions import is_importable
from det_native.heap.snapshot import Snapshot

#: The address that an address begins with, what leads on from there, the class, the fingerprint or an empty text.
Way = tuple[int, Any, str, str]
#: Returns how an open file is opened again elsewhere, as ``__reduce__`` does, or NotImplemented.
Reopen = Callable[[Any], Any]

_PLAIN = ATOMS | {list, dict, tuple, set, frozenset}


class Address:
    """Stands for an object whose state follows, even one that is packed by value elsewhere."""

    def __init__(self, number: int) -> None:
        self.number = number


class KeptValue:
    """Stands for a child that cannot travel: the object that would hold it keeps what it has."""

    def __init__(self, what: str) -> None:
        self.what = what


class HeapPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles what a snapshot's objects hold now.

    Parameters
    ----------
    output : object
        With ``write(data)``.
    snapshot : Snapshot
    replaced : collection of int
        Numbers of objects that are packed by value, as they cannot be changed in place.
    exact : bool
        Of the fingerprints.
    reopen : callable, optional

    Attributes
    ----------
    ways : list of Way
        How the receiver gets from its roots to its objects.
    left : list of (object, str, bool)
        What could not be pickled, with what it is, and whether nobody misses it.
    """

    def __init__(
        self,
        output: Any,
        snapshot: Snapshot,
        replaced: Collection[int],
        *,
        exact: bool = True,
        reopen: Reopen | None = None,
    ) -> None:
        super().__init__(output, protocol=5)
        self._snapshot, self._replaced, self._exact, self._reopen = snapshot, replaced, exact, reopen
        self._ways: dict[int, int] = {}
        self._late: dict[int, int] = {}
        self._unfilled: list[Any] = []
        self._held: list[Any] = []
        self._folder = f"{os.getcwd()}{os.sep}"
        self.ways: list[Way] = []
        self.left: list[tuple[Any, str, bool]] = []

    def persistent_id(self, obj: Any) -> Any:
        cls = type(obj)
        if cls is str:
            return ("within", obj[len(self._folder) :]) if obj.startswith(self._folder) else None
        if cls in ATOMS:
            return None
        if cls is Address:
            return "target", self._way(obj.number, target=True)
        if cls is KeptValue:
            return "kept", obj.what
        number = self._snapshot.numbers.get(id(obj))
        if number is not None:
            if number not in self._replaced:
                return "at", self._way(number)
            if cls not in (set, dict) and not self._snapshot.kinds[number].stays:
                return None
        if cls in (set, dict) and _hashes_state(obj):
            return "late", self._put_off(obj), cls.__name__
        if cls in _PLAIN or cls is Fill:
            return None
        kind = kind_of(obj)
        if not kind.stays or reopened(obj, self._reopen) is not NotImplemented:
            return None
        self.left.append((obj, kind.stays, kind.quiet))
        return "left", kind.stays, kind.quiet

    def dump_all(self, obj: Any) -> None:
        """Pickle an object, then the members of sets and dicts that are filled when all objects have their state."""
        self.dump(obj)
        while self._unfilled:
            batch, self._unfilled = self._unfilled, []
            self.dump([(self._late[id(held)], [*held.items()] if type(held) is dict else [*held]) for held in batch])
        self.dump(None)

    def _put_off(self, obj: Any) -> int:
        if id(obj) not in self._late:
            self._late[id(obj)] = len(self._late)
            self._unfilled.append(obj)
            self._held.append(obj)
        return self._late[id(obj)]

    def _way(self, number: int, *, target: bool = False) -> int:
        place = self._ways.get(number)
        snapshot = self._snapshot
        if place is None:
            before, label = -1, None
            if number:
                before, label = self._way(snapshot.parents[number]), snapshot.label(number)
            # A name leads to the same object whatever that holds; a place in a list need not.
            checked = target or not isinstance(label, str | None)
            fingerprint = snapshot.fingerprint(number, exact=self._exact) if checked else ""
            place = self._ways[number] = len(self.ways)
            self.ways.append((before, label, snapshot.class_name(number), fingerprint))
        elif target and not self.ways[place][3]:
            self.ways[place] = (*self.ways[place][:3], snapshot.fingerprint(number, exact=self._exact))
        return place

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Fill:
            return NotImplemented
        kind = kind_of(obj)
        try:
            if kind.stays:
                function, arguments = reopened(obj, self._reopen)[:2]
                return open_again, (function, *arguments)
            reduced: Any = NotImplemented if kind is VALUE else kind.reduce(obj)
            if reduced is not NotImplemented:
                return guarded(reduced)
            if isinstance(obj, pathlib.PurePath):
                return type(obj), (str(obj),)
            special = super().reducer_override(obj)
            if special is not NotImplemented or isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType):
                return special
            by_class = self.dispatch_table.get(type(obj))
            reduced = by_class(obj) if by_class else obj.__reduce_ex__(5)
            if isinstance(reduced, str) and not is_importable(obj):
                raise TypeError("no module has it")
            return guarded(reduced)
        except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
            what = f"of the class {type(obj).__qualname__}, which cannot be pickled ({short(error)})"
            self.left.append((obj, what, False))
            return Left, (what,)


def reopened(obj: Any, reopen: Reopen | None) -> Any:
    """Return how an object that stays in its process is opened in another; NotImplemented if it is not."""
    if reopen is None:
        return NotImplemented
    try:
        return reopen(obj)
    except Exception:  # noqa: BLE001 (a file of the user's class may raise anything)
        return NotImplemented


def numbers_packed(children: Sequence[Any]) -> bytes | None:
    """Return children as bytes if there are only numbers: a pickler that knows addresses would ask for each one."""
    return (
        pickle.dumps(children, protocol=5) if children and {int, float, bool}.issuperset(map(type, children)) else None
    )


def _hashes_state(held: Any) -> bool:
    """Whether members of a set, or keys of a dict, compute their hash, for which they have to have their state."""
    return any(type(cls.__hash__) is types.FunctionType for cls in {*map(type, held)})


def short(error: BaseException) -> str:
    """Return an error in a line."""
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def guarded(reduced: Any) -> Any:
    """Return how an object is made again, so that one that cannot be made is left out alone."""
    if isinstance(reduced, str):
        return reduced
    parts: list[Any] = [*reduced, *[None] * (6 - len(reduced))]
    function, arguments, state, items, pairs, fill = parts
    return make, (function, *arguments), state, items, pairs, None if state is None else Fill(fill)


def make(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what makes an object."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 (of a library)
        return Left(short(error))


def open_again(function: Callable[..., Any], *arguments: Any) -> Any:
    """Open a file of another process."""
    return make(function, *arguments)


class Fill:
    """Gives an object its state, as pickle does where nothing else is said.

    Parameters
    ----------
    fill : callable, optional
        What the object's class says.
    failures : list of (object, str), optional
        Takes the objects whose class refuses the state.
    """

    def __init__(self, fill: Callable[[Any, Any], Any] | None, failures: list[tuple[Any, str]] | None = None) -> None:
        self._fill, self._failures = fill, failures if failures is not None else []

    def __reduce__(self) -> Any:
        return Fill, (self._fill,)

    def __call__(self, obj: Any, state: Any) -> None:
        if isinstance(obj, Left):
            return
        try:
            self._give(obj, state)
        except Exception as error:  # noqa: BLE001 (a class may refuse a state)
            self._failures.append((obj, short(error)))

    def _give(self, obj: Any, state: Any) -> None:
        if self._fill is not None:
            self._fill(obj, state)
        elif hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            if attributes:
                vars(obj).update(attributes)
            for name, value in (slots or {}).items():
                object.__setattr__(obj, name, value)

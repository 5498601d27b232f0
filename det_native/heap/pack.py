"""What has changed, as bytes: objects of the beginning by their address, new ones by value."""

from __future__ import annotations

import io
import pickle
import sys
import threading
import types
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import cloudpickle

from det_native.heap.edges import ATOMS, VALUE, Left, kind_of
from det_native.heap.kinds.functions import is_importable
from det_native.heap.snapshot import Snapshot, changed_names

#: Children and facts, by number.
States = Mapping[int, tuple[Sequence[Any], Any]]

_DEEP = 200_000
_PLAIN = ATOMS | {list, dict, tuple, set, frozenset}


def pack(snapshot: Snapshot, states: States | None = None, by_value: Set[int] = frozenset()) -> tuple[bytes, list[str]]:
    """Return what has changed since a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
    states : mapping of int to State, optional
        What is packed; by default what has changed.
    by_value : set of int, optional
        Objects of the snapshot that the other process does not have.

    Returns
    -------
    bytes, list of str
        What :func:`det_native.heap.apply.apply` takes, and a sentence for each thing that could not travel.
    """
    changes = snapshot.changes() if states is None else states
    into = io.BytesIO()
    replaced = {n for n in changes if not snapshot.kinds[n].in_place} | by_value
    pickler = _Pickler(into, snapshot, replaced)
    entries: list[Any] = []
    for number, (children, facts) in changes.items():
        if number == 1:
            gone: list[str] = []
            if states is None:
                children, facts, gone = changed_names(snapshot, replaced)
            entries.append((_Address(1), facts, children, gone))
            continue
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        if kind.stays and not kind.quiet and not kind.in_place:
            pickler.left.setdefault(id(obj), f"{snapshot.path(number)} is {kind.stays} and stays where it is.")
        if kind.in_place and number not in by_value:
            try:
                content = kind.content(obj, snapshot.facts[number] if states is None else None, facts)
            except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
                pickler.left[id(obj)] = f"{snapshot.path(number)} cannot be read: {error}"
                continue
            entries.append((_Address(number), facts, list(children), content))
    with_room(lambda: pickler.dump(entries))
    return pickle.dumps((pickler.ways, into.getvalue()), protocol=5), [*pickler.left.values()]


class _Address:
    """Stands for an object whose state follows, even one that is packed by value elsewhere."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, into: io.BytesIO, snapshot: Snapshot, replaced: set[int]) -> None:
        super().__init__(into, protocol=5)
        self._snapshot, self._replaced = snapshot, replaced
        self._kept: list[Any] = []
        self._ways: dict[int, int] = {}
        #: For each address: the address before it, the label, the class.
        self.ways: list[tuple[int, Any, str]] = []
        self.left: dict[int, str] = {}

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in ATOMS:
            return None
        if kind is _Address:
            return "number", self._way(obj.number), False
        number = self._snapshot.numbers.get(id(obj))
        if number is not None:
            if number not in self._replaced:
                return "at", self._way(number), False
            if not self._snapshot.kinds[number].stays:
                return None
        if kind in _PLAIN:
            return None
        stays = kind_of(obj)
        return self._leave(obj, stays.stays, stays.quiet) if stays.stays else None

    def _leave(self, obj: Any, what: str, quiet: bool) -> Any:
        if not quiet:
            self._kept.append(obj)
            self.left.setdefault(id(obj), f"{self._name(obj)} is {what} and stays where it is.")
        return "left", what, quiet

    def _name(self, obj: Any) -> str:
        for name, value in self._snapshot.objects[1].items():
            if value is obj:
                return name
        return f"Something new of the class {type(obj).__qualname__}"

    def _way(self, number: int) -> int:
        known = self._ways.get(number)
        if known is None:
            before = self._way(self._snapshot.parents[number]) if number else -1
            label = self._snapshot.label(number) if number else None
            known = self._ways[number] = len(self.ways)
            self.ways.append((before, label, self._snapshot.class_name(number)))
        return known

    def reducer_override(self, obj: Any) -> Any:
        kind = kind_of(obj)
        if kind is not VALUE:
            try:
                reduced = kind.reduce(obj)
            except Exception as error:  # noqa: BLE001
                return self._instead(obj, str(error))
            if reduced is not NotImplemented:
                return guarded(reduced)
        special = super().reducer_override(obj)
        if special is not NotImplemented or isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType):
            return special
        try:
            by_class = self.dispatch_table.get(type(obj))
            reduced = by_class(obj) if by_class else obj.__reduce_ex__(4)
            if isinstance(reduced, str) and not is_importable(obj):
                return self._instead(obj, "no module has it")
            return guarded(reduced)
        except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
            return self._instead(obj, str(error))

    def _instead(self, obj: Any, reason: str) -> Any:
        self._leave(obj, f"an object of the class {type(obj).__qualname__} ({reason})", quiet=False)
        return Left, (type(obj).__qualname__,)


def guarded(reduced: Any) -> Any:
    """Return how an object is made again, so that one that cannot be made is left out alone."""
    if isinstance(reduced, str):
        return reduced
    function, arguments, state, items, pairs, fill = (*reduced, *[None] * (6 - len(reduced)))
    return make, (function, *arguments), state, items, pairs, None if state is None else _Fill(fill)


def make(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what makes an object."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 (of a library)
        return Left(str(error))


class _Fill:
    """Gives an object its state, as pickle does where nothing else is said."""

    def __init__(self, fill: Callable[[Any, Any], Any] | None) -> None:
        self._fill = fill

    def __reduce__(self) -> Any:
        return _Fill, (self._fill,)

    def __call__(self, obj: Any, state: Any) -> None:
        if isinstance(obj, Left):
            return
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


def with_room(job: Callable[[], Any]) -> Any:
    """Run a job with room for structures of any depth; return what it returns."""
    outcome: list[Any] = []

    def run() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEP)
        try:
            outcome.append((job(), None))
        except BaseException as error:  # noqa: BLE001 (raised again below)
            outcome.append((None, error))
        finally:
            sys.setrecursionlimit(limit)

    before = threading.stack_size(512 << 20)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(before)
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result

"""Objects of classes, the user's or a library's, by their attributes; others by their pickle."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import io
import pickle
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from det_native.heap.digests import HEAP
from det_native.heap.edges import (
    BY_NAME,
    FALLBACK,
    OF_DET_NATIVE,
    UNSEEN,
    Alike,
    Difference,
    Kind,
    Missing,
    NamedKind,
    ReadMemory,
    State,
    kind_of,
    write_new,
)
from det_native.heap.ownership import CAN_GO_ON, definer_of, is_users

CLASS = "__class__"
# Flag of classes, of which the sources of CPython say: not to be changed.
_IMMUTABLE = 1 << 8
#: Classes that were met and are not of det_native.
_NOT_OURS: set[type] = set()


class AttributesKind(NamedKind):
    """All of an object is in its attributes and slots, and in its class, which may change.

    Attributes that are `skipped` are the process's own: never read, and an object keeps its own. For a look, those do
    not count that are ``set_by_use``: a cell that merely uses an object changes nothing.
    """

    set_by_use: frozenset[str] = frozenset()

    def __init__(self, skipped: frozenset[str] = frozenset(), *, compared: bool = True) -> None:
        self._skipped, self.compared, self.is_listed = skipped, compared, not skipped
        self._uncompared = skipped | self.set_by_use
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}  # one tuple for all objects with these attributes
        self._compared_names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def read_state(self, obj: Any) -> State:
        cls: Any = type(obj)
        if self._skipped or slots_of(cls):
            return super().read_state(obj)
        attributes = attributes_of(obj)
        names = CLASS, *attributes
        return [cls, *attributes.values()], self._names.setdefault(names, names)

    def glance(self, obj: Any, read: ReadMemory) -> State:
        cls: Any = type(obj)
        attributes = AttributesKind.read(self, obj) if slots_of(cls) else attributes_of(obj)
        all_names = tuple(attributes)
        names = self._compared_names.get(all_names)
        if names is None:
            names = self._compared_names[all_names] = tuple(n for n in all_names if n not in self._uncompared)
        children = [*map(attributes.__getitem__, names)]
        if not _NOT_OURS.issuperset(map(type, children)):
            _NOT_OURS.update(type(child) for child in children if kind_of(child) is not OF_DET_NATIVE)
            names = tuple(n for n, child in zip(names, children, strict=True) if type(child) in _NOT_OURS)
            children = [*map(attributes.__getitem__, names)]
        return children, names

    def read(self, obj: Any) -> dict[str, Any]:
        cls: Any = type(obj)
        values = {CLASS: cls, **attributes_of(obj)}
        for name, slot in slots_of(cls):
            with contextlib.suppress(AttributeError):  # not set
                values[name] = slot.__get__(obj)
        return {n: v for n, v in values.items() if n not in self._skipped} if self._skipped else values

    def write(self, obj: Any, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        if values.get(CLASS, type(obj)) is not type(obj):
            object.__setattr__(obj, CLASS, values[CLASS])
        slots = _slots(obj)
        for name in gone:
            if name in slots:
                with contextlib.suppress(AttributeError):  # not set
                    slots[name].__delete__(obj)
            else:
                attributes_of(obj).pop(name, None)
        for name, value in values.items():
            if name in slots:
                slots[name].__set__(obj, value)
            elif name != CLASS:
                attributes_of(obj)[name] = value
        self.repair(obj)

    def repair(self, obj: Any) -> None:
        """Make again what is skipped, where it follows from the attributes."""

    def reduce(self, obj: Any) -> Any:
        if not is_users(type(obj)) and not getattr(type(obj), CAN_GO_ON, False):
            return NotImplemented
        return self.reduced(obj)

    def reduced_alone(self, obj: Any) -> Any:
        """Return how an object is pickled whose attributes another one takes: whole, whatever its class leaves out."""
        own = {name for base in type(obj).__mro__[:-1] for name in vars(base)}
        return self.reduce(obj) if own & {"__reduce__", "__reduce_ex__"} else self.reduced(obj)

    def reduced(self, obj: Any, make: Callable[[Any], Any] = object.__new__) -> Any:
        """Return what makes an empty object, and gives it the attributes afterwards."""
        return make, (type(obj),), self.read(obj), None, None, write_new


class ExceptionKind(AttributesKind):
    """An exception. One of the user's is made again past its ``__init__``, which may want other arguments."""

    def reduced_alone(self, obj: BaseException) -> Any:
        return self.reduce(obj)

    def read_state(self, obj: BaseException) -> State:
        children, names = super().read_state(obj)
        return [*children, obj.args], (*names, "args")

    def write(self, obj: BaseException, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        obj.args = values.get("args", obj.args)
        super().write(obj, {name: value for name, value in values.items() if name != "args"}, gone)

    def reduce(self, obj: BaseException) -> Any:
        if not is_users(type(obj)):
            return NotImplemented
        return type(obj).__new__, (type(obj), *obj.args), dict(vars(obj)), None, None, write_new


class MemberKind(AttributesKind):
    """A member of an ``Enum``: there is one of each, which its class has."""

    def reduce(self, obj: Any) -> Any:
        return NotImplemented


def attributes_of(obj: Any) -> dict[str, Any]:
    """Return the attributes of an object's own, whatever its class says when it is asked."""
    try:
        attributes = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}
    return attributes if type(attributes) is dict else {}


def has_attributes(cls: type) -> bool:
    """Whether objects of a class may have attributes of their own."""
    return cls.__dictoffset__ != 0 or bool(slots_of(cls))


def holds_more(cls: Any) -> bool:
    """Whether objects of a class have room for more than attributes: a base that is written in C has its own."""
    pointers = len(slots_of(cls)) + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    room: int = object.__basicsize__ + pointers * struct.calcsize("P")
    return bool(cls.__itemsize__ > 0 or cls.__basicsize__ != room)


def _slots(obj: Any) -> dict[str, Any]:
    cls: Any = type(obj)
    return dict(slots_of(cls))


@functools.cache
def slots_of(cls: Any) -> Sequence[tuple[str, Any]]:
    """Return the slots of a class with their descriptors."""
    slots = []
    for base in cls.__mro__:
        names = vars(base).get("__slots__", ("default_factory",) if base is defaultdict else ())
        for name in (names,) if isinstance(names, str) else names:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            if name not in ("__dict__", "__weakref__") and hasattr(vars(base).get(name), "__set__"):
                slots.append((name, vars(base)[name]))
    return slots


class Composite(Kind):
    """A container, or an object that is more than its attributes, of a class that adds some to what `base` reads."""

    def __init__(self, base: Kind) -> None:
        self._base, self._attributes = base, AttributesKind()
        self.in_place, self.is_ordered, self.is_listed = base.in_place, base.is_ordered, base.is_listed
        self.is_whole = base.is_whole

    def glance(self, obj: Any, read: ReadMemory) -> State:
        inner, inner_facts = self._base.glance(obj, read)
        outer, names = self._attributes.read_state(obj)
        return [*inner, *outer], inner_facts if inner_facts is UNSEEN else (len(inner), inner_facts, names)

    def memory(self, obj: Any) -> Sequence[int]:
        return self._base.memory(obj)

    def read_state(self, obj: Any) -> State:
        inner, inner_facts = self._base.read_state(obj)
        outer, names = self._attributes.read_state(obj)
        return [*inner, *outer], (len(inner), inner_facts, names)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        count, inner, names = facts
        return [*self._base.labels(obj, children[:count], inner), *(("attribute", name) for name in names)]

    def step(self, label: Any) -> str:
        return f".{label[1]}" if type(label) is tuple and label[0] == "attribute" else self._base.step(label)

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        count, inner, _ = facts
        alike = self._base.made_alike(labels[:count], children[:count], inner)
        before: Alike = alike or ((), (), None)
        return [*before[0], *labels[count:]], [*before[1], *children[count:]], before[2]

    def described(self, obj: Any) -> Iterable[Any]:
        return self._base.described(obj)

    def numbers(self, obj: Any, holder: Any) -> Any:
        return self._base.numbers(obj, holder)

    def exact_content(self, obj: Any, facts: Any) -> Any:
        return self._base.exact_content(obj, facts[1])

    def difference(self, obj: Any, before: State, now: State, renewed: Callable[[Any], bool]) -> Difference:
        inner, outer = self._parts(now)
        held = self._parts(before)
        children, facts, content = self._base.difference(obj, held[0], inner, renewed)
        attributes, names, gone = self._attributes.difference(obj, held[1], outer, renewed)
        return [*children, *attributes], (len(children), facts, names), (content, gone)

    def parts(self, children: Sequence[Any], facts: Any, content: Any) -> Sequence[Any] | None:
        count, inner, names = facts
        parts = self._base.parts(children[:count], inner, content[0])
        return None if parts is None else [*parts, *(("attribute", name) for name in (*names, *content[1]))]

    def fits(self, obj: Any, before: State, now: State) -> bool:
        return self._base.fits(obj, self._parts(before)[0], self._parts(now)[0])

    @staticmethod
    def _parts(state: State) -> tuple[State, State]:
        children, (count, facts, names) = state
        return (children[:count], facts), (children[count:], names)

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        count, inner, names = facts
        self._base.write_state(obj, children[:count], inner, content[0])
        self._attributes.write_state(obj, children[count:], names, content[1])

    def reduce(self, obj: Any) -> Any:
        """Return what makes a container again by what its class is based on: no method of the user's has a part."""
        cls: Any = type(obj)
        base: Any = next((base for base in (tuple, frozenset, list, set, dict) if issubclass(cls, base)), None)
        pickled = (f"__{name}__" for name in ("reduce", "reduce_ex", "getstate", "setstate", "getnewargs"))
        if base is None or not {definer_of(cls, name) for name in pickled} <= {None, object, base}:
            return NotImplemented
        items = [*(dict.items(obj) if base is dict else base.__iter__(obj))]
        made, added = (items, ()) if base in (tuple, frozenset) else ((), items)
        return make_container, (cls, base, made), (base, added, self._attributes.read(obj)), None, None, fill_container


def make_container(cls: type, base: Any, items: Sequence[Any]) -> Any:
    """Make a container of the user's class, past its ``__new__``."""
    return base.__new__(cls, items) if items else base.__new__(cls)


def fill_container(container: Any, state: Any) -> None:
    """Give a new container its attributes, and what it holds."""
    base, items, attributes = state
    AttributesKind().write(container, {n: v for n, v in attributes.items() if type(v) is not Missing}, ())
    if items:
        (list.extend if base is list else base.update)(container, items)


def with_attributes(kind: Kind) -> Callable[[type], Kind]:
    """Return what chooses between a kind and one that has a class's attributes, too, and of the user's the class."""
    own = ("builtins", "collections", "array")

    def kind_of_class(cls: type) -> Kind:
        has_more = has_attributes(cls) or is_users(cls)
        return Composite(kind) if has_more and cls.__module__ not in own else kind

    return kind_of_class


class _Shallow(pickle.Pickler):
    """Pickles one object, with its children by their places."""

    def __init__(self, into: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(into, protocol=4)
        self.fast = True  # what is equal is written alike, whether it is one object or several
        self._places = places

    def persistent_id(self, obj: Any) -> Any:
        return self._places.get(id(obj))


class ReduceKind(Kind):
    """An object of an extension: what the collector sees that it holds, and a digest of its pickle without that."""

    def __init__(self, cls: type) -> None:
        self.is_listed = any(base.__module__ == "types" for base in cls.__mro__)
        self.in_place = hasattr(cls, "__setstate__")
        # Pickles of libraries may have in them what differs from process to process.
        self.compared = cls.__module__ in ("builtins", "itertools")
        self._is_data = self.compared or not hasattr(cls, "__next__")

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return (labels, children, facts) if self._is_data and facts is not None else None

    def read_state(self, obj: Any) -> State:
        children = [child for child in gc.get_referents(obj) if not issubclass(type(child), type | str)]
        into = io.BytesIO()
        try:
            _Shallow(into, {id(child): place for place, child in enumerate(children)}).dump(obj)
        except Exception:  # noqa: BLE001 (an object of a library may raise anything)
            return children, None
        return children, hashlib.sha1(into.getvalue(), usedforsecurity=False).hexdigest()

    def glance(self, obj: Any, read: ReadMemory) -> State:
        children = gc.get_referents(obj)
        return children, self.read_state(obj)[1] or UNSEEN if self.compared else UNSEEN

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        reduced = obj.__reduce_ex__(4)
        return reduced[2] if len(reduced) > 2 else None

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if content is not None:
            obj.__setstate__(content)
        elif hasattr(obj, "__next__"):  # an iterator at its end has no place
            for _ in obj:
                pass


class PickledKind(Composite):
    """An object that its library's class pickles, with its attributes."""

    def __init__(self, cls: type) -> None:
        super().__init__(ReduceKind(cls))


class FixedKind(ReduceKind):
    """An object of an extension that nothing can change."""

    def glance(self, obj: Any, read: ReadMemory) -> State:
        return (), None


def _is_plain(cls: type) -> bool:
    """Whether a class statement has made a class."""
    return bool(cls.__flags__ & HEAP) and not cls.__flags__ & _IMMUTABLE


def _kind_of_class(cls: type) -> Kind:
    bases = cls.__mro__[:-1]
    if not _is_plain(cls) or type(cls).__name__ == "pybind11_type":
        return ReduceKind(cls)
    own = {name for base in bases for name in vars(base)}
    if all(map(_is_plain, bases)):
        return AttributesKind()
    if not has_attributes(cls) or own & {"__reduce__", "__reduce_ex__"}:
        return ReduceKind(cls)
    return Composite(ReduceKind(cls)) if "__setstate__" in own else AttributesKind()


FALLBACK.append(_kind_of_class)
BY_NAME |= {"builtins.BaseException": ExceptionKind(), "enum.Enum": MemberKind()}

"""Where objects of a class keep what they hold, which modules are the user's, and which names functions look up."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import re
import sys
import threading
import types
import uuid
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from det_native.heap.ownership import is_library_of_ours
from det_native.inspection.adapter import Adapter
from det_native.inspection.parts import HEAP_TYPE, slots_of
from det_native.inspection.registry import adapter_of

CONTAINERS: tuple[type, ...] = (list, tuple, dict, set, frozenset, deque)
#: Classes of C of which every part is seen here.
_SEEN_WHOLE = frozenset(
    {object, types.SimpleNamespace, list, tuple, dict, set, frozenset, deque, OrderedDict, defaultdict, str, int, float}
)

SMALL = frozenset({type(None), bool, int, type(Ellipsis), type(NotImplemented)})
NUMBERS = frozenset({type(None), bool, int, float, complex})
TEXTS = frozenset({str, bytes})
#: Of these the text says all.
TOLD_BY_TEXT = frozenset(
    {float, complex, range, slice, types.GenericAlias, types.UnionType, decimal.Decimal, fractions.Fraction, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone}
    | {type(pathlib.Path()), pathlib.PurePosixPath}
)
#: What keeps no state of the notebook's, or none that anybody can see.
ENDS = (
    types.ModuleType,
    types.CodeType,
    types.FrameType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    weakref.ReferenceType,
    weakref.CallableProxyType,
    weakref.ProxyType,
    re.Pattern,
)
LOCKS = frozenset({type(threading.Lock()), type(threading.RLock())})
#: What Python keeps in a class for itself; ``__slotnames__`` comes when an object is copied.
NOT_OF_A_CLASS = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "_abc_impl", "__slots__", "__slotnames__"}
)


class Kind(NamedTuple):
    """How objects of one class are looked at.

    Attributes
    ----------
    told : callable or None
        Gives all that there is to say of an object; None where more has to be seen.
    wrapper : str
        The attribute that has the object around which it is made anew each time; else empty.
    ends, changeable : bool
        The walk ends at it; it can change.
    looker : callable or None
        Looks into an object, on a walk; None for one that has attributes.
    adapter : Adapter or None
        Tells what it holds, if it is of a library that is known.
    derived : bool
        It is of a class that is only derived from such a one, and may have attributes besides.
    """

    told: Callable[[Any], Hashable] | None
    wrapper: str = ""
    ends: bool = False
    changeable: bool = False
    looker: Callable[[Any, Any], None] | None = None
    adapter: Adapter | None = None
    derived: bool = False


class Instances(NamedTuple):
    """Where objects of one class keep what they hold: their classes, containers, slots, and attributes but caches."""

    bases: tuple[type, ...]
    hidden: bool
    contents: tuple[type, ...]
    caches: frozenset[str]
    slots: tuple[tuple[str, Any], ...]
    seen_by_attributes: bool


class Kinds:
    """What is known of classes at one moment, and of the numbers of what several names hold.

    Parameters
    ----------
    classes : frozenset of int
        Identities of classes that have a name in the notebook.
    """

    def __init__(self, classes: frozenset[int] = frozenset()) -> None:
        self.classes = classes
        self.known: dict[type, Kind] = {}
        self.numbers: dict[int, tuple[Any, ...]] = {}
        self.kept: list[Any] = []  # what was made for a walk lives as long as this, so that no identity is used twice
        self._instances: dict[type, Instances] = {}

    def instances(self, kind: type) -> Instances:
        """Return where objects of a class keep what they hold."""
        found = self._instances.get(kind)
        if found is None:
            found = self._instances[kind] = self._of_instances(kind)
        return found

    def _of_instances(self, kind: type) -> Instances:
        bases: list[type] = []
        hidden = False
        for base in kind.__mro__:
            if base.__module__ == "__main__" or id(base) in self.classes or is_own(base.__module__):
                bases.append(base)
            elif not base.__flags__ & HEAP_TYPE and base not in _SEEN_WHOLE:
                hidden = True
        contents = tuple(base for base in CONTAINERS if issubclass(kind, base))
        whole = bool(contents) or _has_slots(kind)
        adapter = adapter_of(kind)
        caches = adapter.caches if adapter is not None else frozenset()
        return Instances(
            tuple(bases), hidden, contents, caches, tuple((name, slot) for _, name, slot in slots_of(kind)), whole
        )


def is_own(module: Any) -> bool:
    """Whether a module is a file of the user's."""
    if type(module) is not str or module not in sys.modules:
        return False
    known = _own.get(module)
    if known is None:
        from det_native.capture.modules import is_local  # it loads half of capture

        known = _own[module] = module != "__main__" and is_local(module)
    return known


_own: dict[str, bool] = {}


def _has_slots(kind: type) -> bool:
    return all(base is object or base.__flags__ & HEAP_TYPE for base in kind.__mro__)


def is_importable(function: Any) -> bool:
    """Whether a function is what its module has under its name: it keeps nothing of the notebook's."""
    if function.__module__ == "__main__":
        return False
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        try:
            found = vars(found).get(part)
        except TypeError:
            return False
    return getattr(found, "__func__", found) is function


def plain_key(part: Any) -> Hashable:
    """Return what tells a number or a text from others, with its class; None of all else."""
    kind = type(part)
    if kind in TEXTS:
        return (kind, part)
    return (kind, str(part)) if kind in SMALL or kind in TOLD_BY_TEXT else None


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Return what an object keeps in its ``__dict__``; None if it has none."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):  # a proxy says that it is of another class
        return None
    return attributes if type(attributes) is dict else None


def is_of_det_native(kind: type) -> bool:
    """Whether a class is ours, by what stands in it."""
    module = type.__getattribute__(kind, "__dict__").get("__module__")
    return isinstance(module, str) and is_library_of_ours(module)

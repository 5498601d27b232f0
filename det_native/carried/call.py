"""What the functions and objects of a training call lead to: saved as bytes, and put back in a process like it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from det_native.carried.names import CarriedNames
from det_native.carried.namespaces import Namespace
from det_native.carried.table import NO_KINDS, Address, Kinds, Part
from det_native.inspection.attributes import changed_by_use, changed_names, is_own_module

#: Stands for what a call is given.
CALL = "the call"
_CODE = FunctionType | CellType | type
_CONTAINERS = (list, dict, set, deque)


class CallNames(CarriedNames):
    """Knows what a call's functions and objects lead to when this is made, and so what is different later.

    Parameters
    ----------
    roots : mapping of str to object
        What the call is given, by names that are the same in every process: functions, classes, objects.
    known : mapping
        Objects that are kept otherwise, by what stands for them in other processes.
    apart : collection of str
        Names of roots whose content somebody else saves. Functions in them, and objects of the user's classes that
        hold nothing of ``kinds.fixed``, are saved here all the same.
    changing : sequence of object
        Those of the known objects that the call changes.
    renewed : sequence of object
        Known objects and roots that start fresh in each call: another call does not need what this one makes of them.
    device : torch.device, optional
        Where tensors go that were on a device of its type.
    kinds : Kinds, optional
        Classes of libraries whose objects are looked at in another way.

    Attributes
    ----------
    referred : dict of tuple to object
        Objects of the roots `apart` that are saved here, by their addresses.
    renewed : frozenset of int
        Identities of what starts fresh in each call.
    """

    def __init__(
        self,
        roots: Mapping[str, Any],
        known: Mapping[Any, Any],
        apart: Collection[str] = (),
        changing: Sequence[Any] = (),
        renewed: Sequence[Any] = (),
        device: Any = None,
        kinds: Kinds = NO_KINDS,
    ) -> None:
        super().__init__({CALL: Namespace(dict(roots))}, {CALL: list(roots)}, known, device, kinds)
        self.referred: dict[Address, Any] = {}
        self._changing = frozenset(map(id, changing))
        fresh = frozenset(map(id, renewed))
        of_roots = [part for part in self.parts if part.address[:1] == (CALL,)]
        self.renewed = fresh.union(id(part.value) for part in of_roots if id(roots[part.address[1]]) in fresh)
        if apart:
            self._leave_out(frozenset(apart), kinds.fixed)

    def _leave_out(self, apart: Collection[str], fixed: tuple[type, ...]) -> None:
        """Tell apart which objects of these roots are saved here; what holds an object comes before it."""
        holders = {
            id(holder.value)
            for part in self.parts
            if part.fixed and isinstance(part.value, fixed)
            for holder in _holders(part)
        }
        left_out: set[int] = set()
        inside: set[int] = set()
        for part in self.parts:
            identity, above = id(part.value), part.holder
            if isinstance(part.value, _CODE):
                continue
            if part.address[:1] != (CALL,) or part.address[1] not in apart:
                continue
            if above is not None and id(above.value) not in left_out | inside:
                continue  # of a function
            is_object = is_own_module(type(part.value).__module__) and identity not in holders
            if is_object or (above is not None and id(above.value) in inside):
                inside.add(identity)
                self.referred[part.address] = part.value
            else:
                left_out.add(identity)
                part.fixed = True

    def needed(self) -> frozenset[str]:
        """Return the names that the call's code looks up."""
        return frozenset(name for key, several in self._table.watched.items() for name in several if key != CALL)

    def names_changed(self, key: str) -> frozenset[str]:
        """Return the names of a module that functions bind, or whose containers they change."""
        values = self._table.namespaces[key].values() if key in self._table.namespaces else {}
        changed = {
            name
            for function in self._table.functions
            if str(function.__globals__.get("__name__")) == key
            for name in changed_names(function.__code__).difference(function.__code__.co_freevars)
            if isinstance(values.get(name), _CONTAINERS)
        }
        return frozenset(changed) | self.sets.get(key, frozenset())

    def may_change(self) -> frozenset[int]:
        """Return identities of the objects that the call may change in place, as far as its code tells.

        That is what functions change by its name, and of the given objects the containers and objects that their own
        methods change.
        """
        held: set[int] = set()
        for part in self.parts:
            if part.address[:1] != (CALL,) or not _is_changed(part.value):
                continue
            holder = part.holder
            if holder is None or isinstance(holder.value, type) or (id(holder.value) in held and _is_put(part, holder)):
                held.add(id(part.value))
        return self.changed_by(()) | held | self._changing


def _is_changed(value: Any) -> bool:
    """Whether a value may be changed in place by who has it: arrays and tables are taken for data."""
    return not isinstance(value, _CODE) and (isinstance(value, _CONTAINERS) or is_own_module(type(value).__module__))


def _is_put(part: Part, holder: Part) -> bool:
    """Whether what holds a part changes it: of an object, if its methods change that attribute."""
    step = part.address[-1]
    if isinstance(holder.value, _CONTAINERS) or not isinstance(step, str):
        return True
    kind: type = type(holder.value)
    return step.removeprefix(".") in changed_by_use(kind)


def _holders(part: Part) -> Iterator[Part]:
    holder = part.holder
    while holder is not None:
        yield holder
        holder = holder.holder


def unwrapped(value: Any) -> Iterator[Any]:
    """Yield a function and what it is bound to, where a value is a method or a partial function; else the value."""
    if isinstance(value, MethodType):
        yield value.__func__
        yield value.__self__
    elif isinstance(value, partial):
        for each in (value.func, *value.args, *value.keywords.values()):
            yield from unwrapped(each)
    else:
        yield value

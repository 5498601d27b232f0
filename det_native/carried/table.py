"""All that a loop's names lead to at its beginning: each object with an address, and with what it holds then.

Another process that has run the same program has the same objects at the same addresses.
"""

from __future__ import annotations

import functools
import hashlib
import io
import pickle
import sys
import types
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from det_native.carried import states
from det_native.carried.codes import global_names, globals_bound
from det_native.carried.namespaces import Namespace, is_users
from det_native.carried.numbers import is_tensor, storage_of, storages_of
from det_native.carried.states import State
from det_native.inspection.attributes import is_library_of_ours, is_own_module
from det_native.inspection.parts import parts_of
from det_native.proof.content import PLAIN

Address = tuple[Any, ...]

#: Objects that are watched. Beyond it lie data sets of single objects, which no loop changes.
LIMIT = 200_000
#: Bytes of an object that can only be looked at as a whole, by pickling it: a larger one is taken for data.
WHOLE = 64 << 20

_FUNCTIONS = (
    *(types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType, types.CodeType),
    *(types.FrameType, types.TracebackType),
)
_ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None), type(...), slice, range, *_FUNCTIONS})
_THROUGH = (tuple, frozenset)


@dataclass(eq=False, slots=True)
class Part:
    """One object of the table.

    Attributes
    ----------
    value : object
    address : tuple
        The namespace, the name, and what leads from there to the object.
    before : dict
        What it held.
    holder : Part, optional
        From which it was reached first; None of what a name stands for.
    whole : str
        Of an object that is only known as a whole, a digest of it; empty of others.
    fixed : bool
        It is referred to, and nothing of it is kept.
    """

    value: Any
    address: Address
    before: State = field(default_factory=dict)
    holder: Part | None = None
    whole: str = ""
    fixed: bool = False

    @property
    def name(self) -> str:
        """Return the name that leads to it."""
        return str(self.address[1])


@dataclass(frozen=True)
class Kinds:
    """Classes of libraries whose objects are looked at in another way.

    Attributes
    ----------
    as_users : tuple of type
        Kept by their attributes, as objects of the user's classes are: what of them belongs to this process (a lock,
        an open file) is left out, and the rest is kept.
    fixed : tuple of type
        Kept elsewhere: referred to, and not looked into.
    """

    as_users: tuple[type, ...] = ()
    fixed: tuple[type, ...] = ()


NO_KINDS = Kinds()


class Table:
    """Watches what names lead to.

    Parameters
    ----------
    namespaces : mapping of str to Namespace
        More are added for modules that functions look up names in.
    watched : mapping of str to list of str
        The names of each namespace.
    known : mapping
        Objects that others keep, by what stands for them: they are not looked into.
    kinds : Kinds, optional

    Attributes
    ----------
    parts : dict of int to Part
        By identity; they hold their objects.
    cannot : dict of str to str
        Names whose values cannot be kept, with what they are.
    bound : dict of str to set of str
        Names that functions bind in each namespace.
    functions : list of function
        Those of the user's that the loop may call.
    """

    def __init__(
        self,
        namespaces: dict[str, Namespace],
        watched: Mapping[str, Iterable[str]],
        known: Mapping[Any, Any],
        kinds: Kinds = NO_KINDS,
    ) -> None:
        self.namespaces = namespaces
        self._kinds = kinds
        self.watched: dict[str, dict[str, None]] = {}
        self.before: dict[str, dict[str, Any]] = {}
        self.parts: dict[int, Part] = {}
        self.cannot: dict[str, str] = {}
        self.bound: dict[str, set[str]] = {}
        self.functions: list[types.FunctionType] = []
        self._known = {*map(id, known.values())}
        self._storages = storages_of(known.values())
        self._live: list[Part | None] = []
        self._waiting: deque[tuple[Any, Address, Part | None]] = deque()
        self._passed: set[int] = set()
        self._kept: list[Any] = []
        for key, names in watched.items():
            for name in names:
                self._watch(key, name)
        while self._waiting:
            self._look(*self._waiting.popleft())
        self._drop_live()
        self._kept.clear()
        self.at = {part.address: part for part in self.parts.values()}

    def _watch(self, key: str, name: str) -> None:
        names = self.watched.setdefault(key, {})
        if name in names or not is_users(name):
            return
        names[name] = None
        values = self.namespaces[key].values()
        if name in values and not is_ours(values[name]):
            self.before.setdefault(key, {})[name] = values[name]
            self._waiting.append((values[name], (key, name), None))

    def _watch_module(self, names: dict[str, Any], wanted: Any) -> None:
        key = str(names.get("__name__"))
        if not is_own_module(key):
            return
        if key not in self.namespaces:
            self.namespaces[key] = Namespace(names)
        for name in wanted:
            if name in self.namespaces[key].values() or key == "__main__":
                self._watch(key, name)

    def _look(self, value: Any, address: Address, holder: Part | None) -> None:
        kind = type(value)
        if kind in _ATOMS or id(value) in self._known or id(value) in self.parts or isinstance(value, PLAIN):
            return
        if isinstance(value, types.ModuleType):
            if is_own_module(value.__name__):
                self._watch_module(vars(value), [name for name in vars(value) if is_users(name)])
            return
        if is_ours(value) or (id(value) in self._passed):
            return
        if isinstance(value, _THROUGH):
            self._passed.add(id(value))
            self._kept.append(value)
            for place, one in enumerate(value if isinstance(value, tuple) else ()):
                self._waiting.append((one, (*address, place), holder))
            return
        if len(self.parts) >= LIMIT:
            return
        part = Part(value, address, holder=holder)
        if self._is_fixed(value):
            part.fixed = True
            self.parts[id(value)] = part
            return
        if isinstance(value, types.FunctionType):
            self._look_into_function(value, part)
        elif isinstance(value, type):
            self._look_into_class(value, part)
        else:
            if is_own_module(kind.__module__):
                self._waiting.append((kind, ("class", kind.__module__, kind.__qualname__), None))
            self._look_into(value, part)

    def _is_fixed(self, value: Any) -> bool:
        if isinstance(value, type | types.FunctionType):
            return not is_own_module(value.__module__ or "")
        if isinstance(value, self._kinds.fixed):
            return True
        if is_tensor(value) and storage_of(value) in self._storages:
            return True
        data = sys.modules.get("torch.utils.data")
        return data is not None and isinstance(value, data.DataLoader)

    def _look_into_function(self, function: types.FunctionType, part: Part) -> None:
        self._watch_module(function.__globals__, global_names(function.__code__))
        self.functions.append(function)
        bound = globals_bound(function.__code__)
        self.bound.setdefault(str(function.__globals__.get("__name__")), set()).update(bound)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        for name, cell in cells:
            self._waiting.append((cell, (*part.address, "closure", name), part))
        self._waiting.append((function.__defaults__, (*part.address, "defaults"), part))
        self._enter(part)

    def _look_into_class(self, kind: type, part: Part) -> None:
        for name, member in vars(kind).items():
            if isinstance(member, types.FunctionType | staticmethod | classmethod | property):
                self._waiting.append((member, (*part.address, name), part))
        for base in kind.__mro__[1:]:
            if is_own_module(base.__module__):
                self._waiting.append((base, ("class", base.__module__, base.__qualname__), None))
        self._enter(part)

    def _look_into(self, value: Any, part: Part) -> None:
        its_own = isinstance(value, io.IOBase) or hasattr(type(value), "__next__")
        if its_own and not isinstance(value, self._kinds.as_users):
            self._take_whole(part)
            return
        parts = None if isinstance(value, types.CellType) else parts_of(value)
        if parts is not None:
            self.parts[id(value)] = part
            part.fixed = True
            for place, (_, one) in enumerate(parts):
                self._waiting.append((one, (*part.address, place), part))
            return
        try:
            state = states.state_of(value)
        except Exception:  # noqa: BLE001 (an object of a library, or of the user's, may raise anything)
            self._cannot(part)
            return
        if state:
            self._enter(part, state)
        else:
            self._take_whole(part)

    def _enter(self, part: Part, state: State | None = None) -> None:
        part.before = states.state_of(part.value) if state is None else state
        self.parts[id(part.value)] = part
        for step, held in states.held_by(part.before):
            if type(held) not in _ATOMS:
                self._waiting.append((held, (*part.address, step), part))

    def _take_whole(self, part: Part, *, told: bool = True) -> None:
        digest = whole_digest(part.value)
        if digest is None:
            if told:
                self._cannot(part)
            return
        part.whole, part.fixed = digest, not digest
        self.parts[id(part.value)] = part

    def _cannot(self, part: Part) -> None:
        """Note that an object of this process cannot be kept: nothing of the library's object that holds it is."""
        if part.holder is None and (isinstance(part.value, io.IOBase) or hasattr(type(part.value), "__next__")):
            self.cannot[part.name] = described(part.value)
        self._live.append(part.holder)

    def _drop_live(self) -> None:
        """Let go of objects of libraries that hold something of this process; those that can be are kept as a whole."""
        live: set[Part] = set()
        outermost: set[Part] = set()
        for part in self._live:
            between: list[Part] = []
            last = None
            while part is not None and not self._is_users_object(part.value):
                between.append(part)
                if type(part.value) not in (list, dict, set, deque):
                    live.update(between)
                    between, last = [], part
                part = part.holder
            if last is not None:
                outermost.add(last)
        if not live:
            return
        for key, part in list(self.parts.items()):
            holder: Part | None = part
            while holder is not None and holder not in live:
                holder = holder.holder
            if holder is not None:
                del self.parts[key]
        for part in outermost:
            part.before = {}
            self._take_whole(part, told=False)

    def _is_users_object(self, value: Any) -> bool:
        kind = value if isinstance(value, type) else type(value)
        kinds = (types.FunctionType, types.CellType, *self._kinds.as_users)
        return isinstance(value, kinds) or _module_of(kind)

    # Later.

    def changed(self) -> tuple[list[Part], set[int]]:
        """Return the objects that hold something else now, and identities of those that others have to hold anew."""
        replaced = {
            id(part.value)
            for part in self.parts.values()
            if part.whole and not part.fixed and whole_digest(part.value) != part.whole
        }
        holders = {id(self.parts[one].holder) for one in replaced}
        changed = []
        for part in self.parts.values():
            if part.fixed or part.whole:
                continue
            try:
                now = states.state_of(part.value)
            except Exception:  # noqa: BLE001 (an object of a library, or of the user's, may raise anything)
                changed.append(part)  # the reason is told when it is stored
                continue
            holds = bool(replaced) and (id(part) in holders or states.holds_any(now, replaced))
            if holds or not states.is_same(part.before, now):
                changed.append(part)
        return changed, replaced


#: What a class of ours has whose objects are kept as those of the user's classes are.
CAN_GO_ON = "_det_can_go_on"


def is_ours(value: Any) -> bool:
    """Whether an object is one of det_native, which belongs to its process, unless its class says that it can go on."""
    kind = value if isinstance(value, type) else type(value)
    if getattr(kind, CAN_GO_ON, False):
        return False
    return is_library_of_ours(kind.__module__ if isinstance(kind.__module__, str) else "")


def described(value: Any) -> str:
    """Return what a value is that cannot be kept."""
    if isinstance(value, types.GeneratorType):
        return "a generator"
    if isinstance(value, io.IOBase):
        return "an open file"
    return f"an object of the class {type(value).__name__}"


@functools.cache
def _module_of(kind: type) -> bool:
    return is_own_module(kind.__module__)


class _Digest:
    """A file that only knows what was written into it."""

    def __init__(self) -> None:
        self._seen = hashlib.blake2b(digest_size=16)
        self._size = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._size += size
        if self._size > WHOLE:
            raise OverflowError
        self._seen.update(data)
        return size

    def text(self) -> str:
        return self._seen.hexdigest()


def whole_digest(value: Any) -> str | None:
    """Return a digest of an object as a whole; empty if it is large, None if it cannot be pickled."""
    written = _Digest()
    try:
        pickle.Pickler(written, protocol=5).dump(value)
    except OverflowError:
        return ""
    except Exception:  # noqa: BLE001 (an object of a library may raise anything)
        return None
    return written.text()

"""How an object is looked at: by its value, by what Python's collector lists, or by its kind."""

from __future__ import annotations

import ctypes
import gc
import inspect
import struct
import sys
import types
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from det_native.heap import kinds as _kinds  # noqa: F401 (fills the table)
from det_native.heap.edges import ATOMS, KIND_OF_CLASS, UNSEEN, VALUE, SimpleKind, kind_of
from det_native.heap.kinds.functions import is_importable
from det_native.heap.ownership import is_namespace, is_users, is_users_module

#: Bytes of memory of which all is read in each look, and stretches of what is larger.
_SMALL = 1 << 20
_STRETCHES, _STRETCH = 16, 1 << 14

# How an object is looked at: known by its value, not at all, by what the collector lists (its class among it or not),
# and the order of keys besides; by its kind; of code and tuples each by itself.
VALUE_ITSELF, NOTHING, WITH_CLASS, LISTED, ORDERED, READ, EACH = range(7)
WAYS: dict[type, int] = {}
_VALUES_OF_PYTHON = (types.CodeType, types.GenericAlias, types.UnionType)
_DESCRIPTORS = (
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType),
    type(inspect.Attribute.name),  # the field of a named tuple
)
_HEAP = 1 << 9  # of a class: a class statement has made it
WIDTH = struct.calcsize("P")
_ITEMS = object.__basicsize__ + WIDTH  # where a list says where its items are


def addresses(objects: list[Any]) -> bytes:
    """Return the identities of the members of a list, as they are in its memory."""
    where = ctypes.c_void_p.from_address(id(objects) + _ITEMS).value
    return ctypes.string_at(where, len(objects) * WIDTH) if objects and where else b""


_CHECK: list[Any] = [WAYS, types]
if addresses(_CHECK) != struct.pack("2P", *map(id, _CHECK)):  # another Python than that of python.org

    def addresses(objects: list[Any]) -> bytes:
        return array("Q", map(id, objects)).tobytes()


class TooLargeError(Exception):
    """Memory is not read in a quick look."""


class Memory:
    """Reads memory: small ones whole, of large ones samples, and all of it while there is room.

    Parameters
    ----------
    room : int
        Bytes of large memory of which all may be read; none is read at all if it is below zero.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.sampled = False  # since it was set to False

    def __call__(self, data: Any) -> Any:
        """Return what tells the bytes of a contiguous buffer from others."""
        size = data.nbytes
        if size <= _SMALL:
            return size, zlib.crc32(data)
        if self.room < 0:
            raise TooLargeError
        if size <= self.room:
            self.room -= size
            return size, zlib.crc32(data)
        self.sampled = True
        view = data.cast("B")
        starts = range(0, size - _STRETCH + 1, (size - _STRETCH) // (_STRETCHES - 1))
        return size, *(zlib.crc32(view[start : start + _STRETCH]) for start in starts)

    def part(self, data: Any) -> Any:
        """Do so of a buffer that has only some of the bytes that are meant."""
        self.sampled = True
        return self(data)

    def at(self, address: int, size: int) -> Any:
        """Do so of bytes at an address."""
        if not size or not address:  # of a tensor that was freed
            return ()
        return self(memoryview((ctypes.c_char * size).from_address(address)))


def can_change(value: Any) -> bool:
    """Whether there is anything in a value that can be another one later."""
    return way_of(value) > NOTHING


def way_of(obj: Any) -> int:
    """Return how an object is looked at."""
    cls = type(obj)
    way = WAYS.get(cls)
    if way is None:
        way = WAYS[cls] = _way_of_class(obj, cls)
    return _way_of_each(obj) if way == EACH else way


def _way_of_class(obj: Any, cls: type) -> int:
    if cls in ATOMS or issubclass(cls, _VALUES_OF_PYTHON):
        return VALUE_ITSELF
    if cls is tuple or issubclass(cls, type | types.FunctionType | types.ModuleType):
        return EACH
    kind = kind_of(obj)
    if kind is VALUE and not is_users(cls):
        return VALUE_ITSELF
    if issubclass(cls, _DESCRIPTORS) or (isinstance(kind, SimpleKind) and kind.is_empty):
        return NOTHING
    if issubclass(cls, OrderedDict):
        return ORDERED if kind.is_listed else READ
    if kind.is_listed or kind is VALUE:
        return WITH_CLASS if cls.__flags__ & _HEAP else LISTED
    return READ


def _way_of_each(obj: Any) -> int:
    """Return how a tuple, a function, a class or a module is looked at: of libraries' only functions made in a call."""
    if type(obj) is tuple:
        return VALUE_ITSELF if ATOMS.issuperset(map(type, obj)) else LISTED
    if issubclass(type(obj), types.ModuleType):
        return READ if is_namespace(obj) else NOTHING
    if type(obj) is types.FunctionType:
        return READ if is_users(obj) or ("<locals>" in obj.__qualname__ and not is_importable(obj)) else NOTHING
    module = type.__getattribute__(obj, "__module__")
    return READ if isinstance(module, str) and is_users_module(module) else NOTHING


def is_value(obj: Any) -> bool:
    """Whether an object is known by its value alone; such a one is held from one look to the next."""
    return way_of(obj) == VALUE_ITSELF


#: What else than the collector lists, of an object that is looked at in one way.
LISTS: dict[int, Callable[[Any], list[Any]]] = {
    ORDERED: lambda obj: [*gc.get_referents(obj), *OrderedDict.__iter__(obj)]
}
if sys.version_info >= (3, 13):  # an object's attributes are listed, and not the dictionary that has their names
    LISTS[WITH_CLASS] = lambda obj: [*gc.get_referents(obj), attributes_of(obj)]


def attributes_of(obj: Any) -> dict[str, Any] | None:
    """Return the dictionary of attributes, which an object may have only from when somebody asks for it."""
    try:
        attributes = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


def read(obj: Any, memory: Memory) -> tuple[list[Any], tuple[Any, bool]]:
    """Return what an object holds, its facts, and whether these are of samples."""
    kind = KIND_OF_CLASS.get(type(obj)) or kind_of(obj)
    memory.sampled = False
    try:
        children, facts = kind.glance(obj, memory)
        if memory.sampled and memory.room > 0:  # of several arrays all are read in the same way each time
            children, facts = kind.glance(obj, Memory(0))
    except TooLargeError:
        raise
    except Exception:  # noqa: BLE001 (an object of a library may raise anything)
        return gc.get_referents(obj), (UNSEEN, False)
    return [*children] if kind.is_ordered else sorted(children, key=id), (facts, memory.sampled)

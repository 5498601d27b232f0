"""The state of one object of Python's: what it holds itself, of which other objects are others' affair."""

from __future__ import annotations

import operator
import pickle
import types
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

from det_native.carried import numbers
from det_native.inspection.attributes import is_own_module
from det_native.inspection.parts import slots_of

State = dict[str, Any]

_PLAIN = frozenset({int, float, bool, str, bytes, type(None), complex})
_MANY = 32
_UNSET = object()
#: A list of plain values, pickled at once.
PLAIN_LIST = "plain"


def state_of(value: Any) -> State:
    """Return what an object holds, by aspect; a list, say, has items, and attributes too if its class is a user's."""
    state: State = {}
    if isinstance(value, types.CellType):
        state["content"] = {"": _content(value)} if _content(value) is not _UNSET else {}
        return state
    if isinstance(value, list | deque):
        state["items"] = [*value]
    elif isinstance(value, OrderedDict):
        state["pairs"] = [*value.items()]
    elif isinstance(value, dict):
        state["pairs"] = dict.copy(value)
    elif isinstance(value, set):
        state["elements"] = set.copy(value)
    elif isinstance(value, bytearray):
        state["bytes"] = bytes(value)
    elif numbers.is_array(value) or numbers.is_tensor(value):
        state["numbers"] = numbers.fingerprint(value)
        return state  # what torch hangs on a tensor is its own affair
    if holds_attributes(value):
        state["attributes"] = attributes_of(value)
    return state


def holds_attributes(value: Any) -> bool:
    """Whether an object, a function or a class of the user's has attributes that code may set."""
    if _is_more_than_attributes(value):
        return False
    return isinstance(getattr(value, "__dict__", None), dict | types.MappingProxyType) or any(slots_of(type(value)))


def _is_more_than_attributes(value: Any) -> bool:
    """Whether an object of a library pickles what no attribute of it has: ``random.Random``, say."""
    kind = type(value)
    if isinstance(value, type | types.FunctionType):
        return False
    if not any("__reduce__" in vars(base) and not is_own_module(base.__module__) for base in kind.__mro__[:-1]):
        return False
    try:
        reduced = value.__reduce__()
    except Exception:  # noqa: BLE001 (of a library)
        return False
    return isinstance(reduced, tuple) and len(reduced) > 2 and not isinstance(reduced[2], dict | None)


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes that an object holds; of a class, those that are data."""
    if isinstance(value, type):
        return {name: held for name, held in vars(value).items() if name[:2] != "__" and not _is_method(held)}
    attributes = dict(getattr(value, "__dict__", {}))
    for _, name, slot in slots_of(type(value)):
        try:
            attributes.setdefault(name, slot.__get__(value))
        except AttributeError:  # not set yet
            continue
    return attributes


def _is_method(held: Any) -> bool:
    return isinstance(held, types.FunctionType | staticmethod | classmethod | property) or hasattr(held, "__set_name__")


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _UNSET


def held_by(state: State) -> Iterator[tuple[Any, Any]]:
    """Yield what a state holds, each with what leads to it from its owner."""
    for place, item in enumerate(state.get("items", ())):
        yield place, item
    pairs = state.get("pairs", ())
    for place, (key, held) in enumerate(pairs.items() if isinstance(pairs, dict) else pairs):
        plain = type(key) in (str, int, bool)
        if not plain:
            yield ("key", place), key
        yield ("value", key if plain else place), held
    for aspect in ("attributes", "content"):
        for name, held in state.get(aspect, {}).items():
            yield f".{name}", held


def holds_any(state: State, identities: set[int]) -> bool:
    """Whether a state holds one of these objects."""
    for aspect, held in state.items():
        if aspect in ("items", "attributes", "content", "pairs"):
            values = held.values() if isinstance(held, dict) else held
            if not identities.isdisjoint(map(id, values)):
                return True
    return False


def is_same(before: State, now: State) -> bool:
    """Whether two states of an object hold the same objects."""
    return before.keys() == now.keys() and all(_same(before[aspect], now[aspect]) for aspect in before)


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, dict) and isinstance(now, dict):
        return len(before) == len(now) and _same_each(before, now) and _same_each(before.values(), now.values())
    if isinstance(before, list):
        if len(before) == len(now) and before and type(before[0]) is tuple:  # pairs
            return all(map(_same_pair, before, now))
        return len(before) == len(now) and _same_each(before, now)
    if isinstance(before, set):
        return len(before) == len(now) and {*map(id, before)} == {*map(id, now)}
    return bool(before == now)


def _same_each(before: Any, now: Any) -> bool:
    return all(map(operator.is_, before, now))


def _same_pair(before: Any, now: Any) -> bool:
    if type(before) is not tuple or type(now) is not tuple or len(before) != len(now):
        return before is now
    return before is now or all(map(operator.is_, before, now))


def _changed_in(before: dict[str, Any], now: dict[str, Any], replaced: set[int]) -> tuple[dict[str, Any], list[str]]:
    """Return which names have other values now, and which are gone."""
    changed = {
        name: value for name, value in now.items() if before.get(name, _UNSET) is not value or id(value) in replaced
    }
    return changed, [name for name in before if name not in now]


def content_of(value: Any, before: State, replaced: set[int]) -> State:
    """Return what :func:`put` needs to give the object's present state to another one, which has the state before.

    Parameters
    ----------
    value : object
    before : dict
    replaced : set of int
        Identities of what it holds as before, and has to hold anew.
    """
    now = state_of(value)
    content: State = {}
    for aspect, held in now.items():
        if aspect in ("attributes", "content"):
            content[aspect] = _changed_in(before.get(aspect, {}), held, replaced)
        elif aspect == "numbers":
            content[aspect] = numbers.encoded(value) if numbers.is_tensor(value) else value.copy()
        elif aspect == "pairs":
            content[aspect] = [*held.items()] if isinstance(held, dict) else held
        elif aspect == "items" and len(held) > _MANY and {*map(type, held)} <= _PLAIN:
            content[aspect] = (PLAIN_LIST, pickle.dumps(held, protocol=5))
        else:
            content[aspect] = held
    return content


def put(value: Any, content: State) -> None:
    """Give an object a state, in place."""
    for aspect, held in content.items():
        _PUT[aspect](value, held)


def _put_items(value: Any, held: Any) -> None:
    if isinstance(held, tuple):
        held = pickle.loads(held[1])
    if isinstance(value, list):
        list.__setitem__(value, slice(None), held)
    else:
        value.clear()
        value.extend(held)


def _put_pairs(value: Any, held: list[tuple[Any, Any]]) -> None:
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    kind.clear(value)
    for key, one in held:
        kind.__setitem__(value, key, one)


def _put_elements(value: Any, held: set[Any]) -> None:
    set.clear(value)
    set.update(value, held)


def _put_bytes(value: bytearray, held: bytes) -> None:
    value[:] = held


def _put_numbers(value: Any, held: Any) -> None:
    numbers.put_numbers(value, numbers.decoded(*held) if isinstance(held, tuple) else held)


def _put_attributes(value: Any, held: tuple[dict[str, Any], list[str]]) -> None:
    changed, gone = held
    plain = getattr(value, "__dict__", None)
    for name, one in changed.items():
        if isinstance(value, type):
            setattr(value, name, one)
        elif isinstance(plain, dict) and not _is_slot(value, name):
            plain[name] = one  # past what the class does when it is set: a property, a frozen dataclass
        else:
            object.__setattr__(value, name, one)
    for name in gone:
        if isinstance(plain, dict) and name in plain:
            del plain[name]
        elif isinstance(value, type) and name in vars(value):
            delattr(value, name)
        elif _is_slot(value, name):
            object.__delattr__(value, name)


def _is_slot(value: Any, name: str) -> bool:
    return any(name == slot for _, slot, _ in slots_of(type(value)))


def _put_content(value: types.CellType, held: tuple[dict[str, Any], list[str]]) -> None:
    for content in held[0].values():
        value.cell_contents = content
    if held[1]:
        del value.cell_contents


_PUT = {
    "items": _put_items,
    "pairs": _put_pairs,
    "elements": _put_elements,
    "bytes": _put_bytes,
    "numbers": _put_numbers,
    "attributes": _put_attributes,
    "content": _put_content,
}

"""Which attributes of an object are settings: those that its own methods do not change while it is used."""

from __future__ import annotations

import dis
import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from det_native.heap.ownership import is_users_module
from det_native.inspection.parts import inner_codes, slots_of

# What changes a container of Python: what its counterpart that cannot be changed does not have.
_CHANGING = frozenset(
    {*dir(list), *dir(deque)} - set(dir(tuple))
    | set(dir(dict)) - set(dir(types.MappingProxyType))
    | set(dir(set)) - set(dir(frozenset))
) - {"copy", "fromkeys"}
_MAKING = {"__init__", "__new__", "__post_init__", "__setstate__"}


def settings_in(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that do not change by mere use, by name.

    Of an object of a library the private ones are left out: they are its own affair.
    """
    own = is_users_module(type(value).__module__)
    kind: Any = type(value)
    changed, by_hooks = changed_by_use(kind), changed_by_hooks(kind)
    held = getattr(value, "__dict__", None)
    attributes = dict(held) if isinstance(held, dict) else {}
    for name in (name for base, name, _ in slots_of(kind) if is_users_module(base.__module__)):
        try:
            attributes.setdefault(name, getattr(value, name))
        except AttributeError:  # not set yet
            continue
    for name, attribute in sorted(attributes.items()):
        # What load() or fit() has made is data, whoever has called that; a counter of theirs is not.
        kept = name not in changed or (own and name not in by_hooks and _is_array(attribute))
        if kept and (own or not name.startswith("_")):
            yield name, attribute


def plain_settings(value: Any) -> dict[str, Any]:
    """Return the plain settings of an object by name, without those that begin with an underscore."""
    kinds = (bool, int, float, str, list, tuple)
    return {name: setting for name, setting in settings_in(value) if type(setting) in kinds and name[0] != "_"}


@functools.lru_cache(maxsize=1024)
def assigned_by(kind: type) -> frozenset[str]:
    """Return the attributes that the user's classes among the bases of a class assign in their own code."""
    codes = [
        member.__code__
        for base in kind.__mro__
        if is_users_module(base.__module__)
        for member in vars(base).values()
        if isinstance(member, types.FunctionType)
    ]
    return frozenset(
        instruction.argval
        for code in codes
        for instruction in dis.get_instructions(code)
        if instruction.opname == "STORE_ATTR"
    )


def _is_array(value: Any) -> bool:
    return hasattr(value, "iloc") or (hasattr(value, "shape") and hasattr(value, "dtype") and value.shape != ())


def class_settings(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the plain attributes that the user's classes among the bases of a class have, by name.

    Methods, properties and what its methods change are left out.
    """
    changed = changed_by_use(kind)
    seen: set[str] = set()
    for base in kind.__mro__:
        if not is_users_module(base.__module__):
            continue
        for name, attribute in sorted(vars(base).items()):
            if name.startswith("__") or name in seen or name in changed:
                continue
            seen.add(name)
            if not callable(attribute) and not hasattr(attribute, "__get__"):
                yield name, attribute


@functools.lru_cache(maxsize=1024)
def changed_by_use(kind: type) -> frozenset[str]:
    """Return the attributes that methods change, but for those that are only called while the object is made."""
    methods = _methods_of(kind)
    making = _reached_from(_MAKING & set(methods), methods)
    used = _reached_from(set(methods) - making, methods)
    return frozenset().union(*(_attributes_changed_in(methods[name].__code__) for name in used - _MAKING))


@functools.lru_cache(maxsize=1024)
def changed_by_hooks(kind: type) -> frozenset[str]:
    """Return the attributes that are changed by methods which others than the user call: special ones, and hooks."""
    methods: dict[str, types.FunctionType] = {}
    hooks: set[str] = set()
    for base in reversed(kind.__mro__[:-1]):
        found = {name: member for name, member in vars(base).items() if isinstance(member, types.FunctionType)}
        if not is_users_module(base.__module__):
            hooks |= set(found)
        methods |= found
    hooks |= {name for name in methods if name.startswith("__")} - _MAKING
    used = _reached_from(hooks & set(methods), methods)
    return frozenset().union(*(_attributes_changed_in(methods[name].__code__) for name in used - _MAKING))


def _methods_of(kind: type) -> dict[str, types.FunctionType]:
    methods: dict[str, types.FunctionType] = {}
    for base in reversed(kind.__mro__[:-1]):
        methods |= {name: member for name, member in vars(base).items() if isinstance(member, types.FunctionType)}
    return methods


def _reached_from(names: set[str], methods: dict[str, types.FunctionType]) -> set[str]:
    reached: set[str] = set()
    while names:
        name = names.pop()
        reached.add(name)
        names |= (_names_in(methods[name].__code__) & set(methods)) - reached
    return reached


@functools.lru_cache(maxsize=4096)
def changed_names(code: types.CodeType) -> frozenset[str]:
    """Return the names that code binds outside of itself, or whose containers it changes."""
    return frozenset(_changed(code, {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF"}, ("GLOBAL", "DEREF", "NAME")))


def _attributes_changed_in(code: types.CodeType) -> frozenset[str]:
    return frozenset(_changed(code, {"STORE_ATTR", "DELETE_ATTR"}, ("ATTR", "METHOD")))


def _changed(code: types.CodeType, stores: set[str], loads: tuple[str, ...]) -> Iterator[str]:
    """Yield the names that are bound by `stores`, and those loaded by `loads` of which something is changed."""
    wanted = {f"LOAD_{kind}" for kind in loads}
    instructions = list(dis.get_instructions(code))
    for place, one in enumerate(instructions):
        if one.opname in stores:
            yield one.argval
        elif one.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"):
            yield from _owners(one, instructions[:place], wanted)
        elif one.opname in ("LOAD_ATTR", "LOAD_METHOD") and one.argval in _CHANGING and place:
            yield from _owners(instructions[place - 1], instructions[:place], wanted)
        elif one.opname == "STORE_ATTR" and "STORE_ATTR" not in stores and instructions[place - 1].opname in wanted:
            yield instructions[place - 1].argval
    for inner in inner_codes(code):
        yield from _changed(inner, stores, loads)


def _owners(part: dis.Instruction, before: list[dis.Instruction], wanted: set[str]) -> list[str]:
    """Return the loaded name of which a part is changed: in the text, it begins where the part does.

    None where the part is of another value; all names that were loaded where the text does not tell.
    """
    first = part.positions and (part.positions.lineno, part.positions.col_offset)
    same = [part for part in before if part.positions and (part.positions.lineno, part.positions.col_offset) == first]
    loaded = [part.argval for part in same or before if part.opname in wanted]
    return loaded[-1:] if same else loaded


def _names_in(code: types.CodeType) -> frozenset[str]:
    return frozenset(code.co_names).union(*(_names_in(one) for one in inner_codes(code)))

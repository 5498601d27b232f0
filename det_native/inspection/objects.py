"""Objects of several names, back from one pickle: what they share stays shared, and what is there is changed in place.

The pickle holds roots, which are objects that names have, and the rest. A root is a container that is filled, a model
or numbers (which nothing of the rest is needed for), the state of an object that is there, or any other object. A
reference leads to a root, to a part of a model, or to a class or function of the program.
"""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Mapping, MutableMapping
from functools import reduce
from typing import Any, NamedTuple

from det_native.inspection.registry import adapter_of

#: Containers whose content is put in place, by their names.
FILLED: dict[str, type[Any]] = {kind.__name__: kind for kind in (list, dict, set, deque, bytearray)}


class Root(NamedTuple):
    """An object that names have: what kind of root it is, and its own pickle, if it does not stand in the rest."""

    names: tuple[str, ...]
    kind: str  # one of FILLED, or "alone", "state", "rest"
    content: bytes = b""


class AnotherBuildError(ValueError):
    """The state of an object does not fit the one that is there; `name` has it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is of another build")
        self.name = name


def put_objects(content: bytes, names: MutableMapping[str, Any], wanted: Mapping[str, bool]) -> None:
    """Bind names to their objects.

    Parameters
    ----------
    content : bytes
    names : mapping
        Of the program.
    wanted : mapping of str to bool
        The names to bind, and whether the object that one has takes the state in place.

    Raises
    ------
    AnotherBuildError
    """
    listed, rest = pickle.loads(content)
    roots = [Root(*one) for one in listed]
    targets: dict[int, Any] = {}
    for number, root in enumerate(roots):
        there = next((names[name] for name in root.names if wanted.get(name) and name in names), None)
        if root.kind in FILLED:
            targets[number] = there if type(there) is FILLED[root.kind] else FILLED[root.kind]()
        elif root.kind == "alone":
            targets[number] = taken(there, _Reader(root.content, names, targets).load())
        elif root.kind == "state":
            targets[number] = names.get(root.names[0])
            if there is not None and not _put_state(there, _Reader(root.content, names, targets).load()):
                raise AnotherBuildError(root.names[0])
        else:
            targets[number] = there
    for number, inner in _Reader(rest, names, targets).load().items():
        if roots[number].kind in FILLED:
            refill(targets[number], inner)
        else:
            targets[number] = taken(targets[number], inner)
    for number, root in enumerate(roots):
        names.update({name: targets[number] for name in root.names if name in wanted})


def only_object(content: bytes) -> Any:
    """Return the object of a pickle that has one, made anew."""
    listed, _ = pickle.loads(content)
    name = Root(*listed[0]).names[0]
    names: dict[str, Any] = {}
    put_objects(content, names, {name: False})
    return names[name]


def put_only_state(content: bytes, value: Any) -> bool:
    """Give an object the state of a pickle that has one; False, and nothing is done, if it is of another build."""
    listed, _ = pickle.loads(content)
    name = Root(*listed[0]).names[0]
    try:
        put_objects(content, {name: value}, {name: True})
    except AnotherBuildError:
        return False
    return True


def taken(there: Any, value: Any) -> Any:
    """Return the object that is there, if it takes the state of another one, else the other one."""
    if type(there) is not type(value):
        return value
    if type(value) in FILLED.values():
        refill(there, value)
        return there
    adapter = adapter_of(type(value))
    state = None if adapter is None else adapter.state(value)
    if adapter is None or state is None:
        return value
    adapter.build_as(there, value)
    return there if _put_state(there, state) else value


def refill(there: Any, content: Any) -> None:
    """Give a container another content."""
    if there is content:
        return
    there.clear()
    there.update(content) if isinstance(there, dict | set) else there.extend(content)


def _put_state(there: Any, state: Any) -> bool:
    adapter = adapter_of(type(there))
    return adapter is not None and adapter.put_state(there, state)


class _Reader(pickle.Unpickler):
    def __init__(self, content: bytes, names: Mapping[str, Any], targets: Mapping[int, Any]) -> None:
        super().__init__(io.BytesIO(content))
        self._names, self._targets = names, targets

    def persistent_load(self, reference: tuple[Any, ...]) -> Any:
        kind, place, *part = reference
        if kind == "code":
            name, *attributes = place.split(".")
            return reduce(getattr, attributes, self._names[name])
        target = self._targets[place]
        if kind == "root":
            return target
        adapter = adapter_of(type(target))
        assert adapter is not None
        return adapter.shared_parts(target)[part[0]]


def check_objects(content: bytes) -> None:
    """Load what can be loaded without the program: what is made of its classes is not.

    Raises
    ------
    Exception
        Whatever loading raises that no class of the program has a part in.
    """
    listed, rest = pickle.loads(content)
    for inner in (*(own for _, _, own in listed if own), rest):
        reader = _WithoutProgram(inner, {}, {})
        try:
            reader.load()
        except Exception:
            if not reader.lacked:
                raise


class _WithoutProgram(_Reader):
    lacked = False

    def persistent_load(self, reference: tuple[Any, ...]) -> Any:
        self.lacked = True
        return _Lacking


class _Lacking:
    """Stands for a class of the program, or an object."""

    def __new__(cls, *_: Any, **__: Any) -> _Lacking:
        return object.__new__(cls)

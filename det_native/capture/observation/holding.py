"""Whether a value that is too large to be looked at whole may hold an object that has changed."""

from __future__ import annotations

import gc
import sys
import time
import types
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from det_native.inspection.registry import adapter_of

_MOST = 2_000  # objects of a changed value whose references are counted
_TOGETHER = 2_000  # objects whose parts are asked for at once
#: What holds nothing that can change.
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})
#: What leads to everything, or to nothing of the notebook's.
_ENDS = (type, types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType)


def may_hold(value: Any, objects: set[int], end: float) -> bool:
    """Whether one of these objects can be reached from a value.

    Parameters
    ----------
    value : object
    objects : set of int
        Identities, and addresses of the numbers of tensors.
    end : float
        What ``time.thread_time()`` says when it is time to give up; then it may.
    """
    met: set[int] = set()
    waiting: list[Any] = [value]
    while waiting:
        some, waiting = waiting[-_TOGETHER:], waiting[:-_TOGETHER]
        new = {id(one): one for one in some if id(one) not in met}
        if not objects.isdisjoint(new) or not objects.isdisjoint(_addresses(new.values())):
            return True
        if time.thread_time() > end:
            return True
        met |= new.keys()
        waiting.extend(_parts([*new.values()]))
    return False


def may_be_held_elsewhere(names: Collection[str], namespace: Mapping[str, Any]) -> bool:
    """Whether anything but these values and the names of the notebook has a reference to an object in one of them.

    Every reference that is known is counted, and Python knows how many there are.
    """
    known: Counter[int] = Counter(map(id, namespace.values()))
    shown = namespace.get("Out")
    if isinstance(shown, dict):
        known.update(map(id, shown.values()))
    found: dict[int, Any] = {id(namespace[name]): namespace[name] for name in names if name in namespace}
    waiting = [*found]
    while waiting:
        inner = _parts([found[key] for key in waiting])
        known.update(map(id, inner))
        waiting = list({id(one) for one in inner} - found.keys())
        found.update((id(one), one) for one in inner)
        inner.clear()
        if len(found) > _MOST:
            return True
    if _addresses(found.values()) or any(_is_closure(one) for one in found.values()):
        return True  # who else has the same numbers, or the same variable, cannot be counted
    return any(sys.getrefcount(found[key]) - 2 > known[key] for key in found if not _is_plain(found[key]))


def _parts(objects: Sequence[Any]) -> list[Any]:
    """Return what these objects refer to and can change, or holds what can; as often as they refer to it."""
    kinds = set(map(type, objects))
    if types.FunctionType in kinds:
        functions = [one for one in objects if type(one) is types.FunctionType]
        objects = [one for one in objects if type(one) is not types.FunctionType]
        parts = [*gc.get_referents(*objects)]
        for one in functions:
            parts += [*(one.__closure__ or ()), one.__defaults__, one.__kwdefaults__, one.__dict__]
    else:
        parts = gc.get_referents(*objects)
    adapters = {kind: adapter for kind in kinds if (adapter := adapter_of(kind)) is not None}
    if adapters:
        for one in objects:
            if (adapter := adapters.get(type(one))) is not None:
                parts += adapter.referents(one)
    wanted = {kind for kind in set(map(type, parts)) if kind not in _PLAIN and not issubclass(kind, _ENDS)}
    return [one for one in parts if type(one) in wanted] if wanted else []


def _addresses(objects: Iterable[Any]) -> set[int]:
    """Return where the numbers of tensors lie: others may have the same."""
    objects = list(objects)
    adapters = {kind: adapter for kind in set(map(type, objects)) if (adapter := adapter_of(kind)) is not None}
    addresses = (adapters[type(one)].address(one) for one in objects if type(one) in adapters) if adapters else ()
    return {address for address in addresses if address is not None}


def _is_closure(one: Any) -> bool:
    return type(one) is types.FunctionType and bool(one.__closure__)


def _is_plain(one: Any) -> bool:
    """Whether something that may be shared by all who need the like holds nothing that can change."""
    return type(one) in (tuple, frozenset) and not _parts([one])

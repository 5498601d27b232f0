"""Copies of the user's objects, in which what belongs to the process or to a graph is shared: tensors, locks, contexts.

``copy.deepcopy`` refuses an object of which one part cannot be copied, however deep that lies. Here the parts around it
are copied all the same: a sum that lies beside a lock must not be shared.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

import tensorflow as tf

from det_native.horovod import HorovodTrialContext
from det_native.inspection.own_code import is_library_file
from det_native.trial import Trial

_Memo = dict[int, Any]
_OF_COPIES = (
    "__deepcopy__",
    "__copy__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__new__",
)


def copied(value: Any, memo: _Memo | None = None) -> Any:
    """Return a copy of an object and of all that it is made of, as far as that can be copied.

    Parameters
    ----------
    value
    memo : dict, optional
        As that of ``copy.deepcopy``: what is copied already, by its identity.
    """
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    if _belongs_to_process(value):
        return _noted(value, value, memo)
    if type(value) in (list, set, dict):
        return _container(value, memo)
    if type(value) in (tuple, frozenset):
        parts = [copied(part, memo) for part in value]
        return memo.get(id(value)) or _noted(value, type(value)(parts), memo)
    if _has_plain_state(value):
        made = _noted(value, object.__new__(type(value)), memo)
        for name, part in _attributes(value).items():
            object.__setattr__(made, name, copied(part, memo))
        return made
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001 (whatever says that it has no copy: a lock, a file, a session)
        return _noted(value, value, memo)


def _container(value: Any, memo: _Memo) -> Any:
    made = _noted(value, type(value)(), memo)
    if isinstance(value, dict):
        made.update((copied(key, memo), copied(part, memo)) for key, part in value.items())
    elif isinstance(value, list):
        made.extend(copied(part, memo) for part in value)
    else:
        made.update(copied(part, memo) for part in value)
    return made


def _noted(value: Any, made: Any, memo: _Memo) -> Any:
    memo[id(value)] = made
    memo.setdefault(id(memo), []).append(value)  # as deepcopy does: an identity is valid as long as its object lives
    return made


def _belongs_to_process(value: Any) -> bool:
    # An object with a finalizer (a session, a file) holds a resource of the process.
    ends = hasattr(type(value), "__del__")
    return ends or tf.is_tensor(value) or isinstance(value, tf.Variable | HorovodTrialContext | Trial)


def _has_plain_state(value: Any) -> bool:
    """Return whether an object is what its attributes are: its class is the user's, and says nothing else of copies."""
    kind = type(value)
    if (
        isinstance(value, type)
        or kind.__module__ in sys.builtin_module_names
        or any(getattr(kind, name, None) is not getattr(object, name, None) for name in _OF_COPIES)
    ):
        return False
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is None or not is_library_file(file)


def _attributes(value: Any) -> dict[str, Any]:
    slots = [
        name
        for kind in type(value).__mro__
        for name in _listed(vars(kind).get("__slots__", ()))
        if name not in ("__dict__", "__weakref__")
    ]
    in_slots = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**in_slots, **getattr(value, "__dict__", {})}


def _listed(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)

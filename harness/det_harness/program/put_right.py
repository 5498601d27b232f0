"""The notebook's value of an input, put in the place of the value that the worker has made."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

from det_native.capture.value_formats import decode
from det_native.heap.values import put_only_state
from det_native.proof.content import content_of
from det_native.proof.leaves import Leaf
from det_native.schema.proof import InputLeaf


def notebook_value(
    there: InputLeaf, read_blob: Callable[[str], bytes], placed: Callable[[Any], Any] = lambda value: value
) -> Any:
    """Return the value that a part of an input had in the notebook, with paths as they are here.

    Raises
    ------
    ValueError
        If it did not travel, or is not what it was.
    """
    if there.literal:
        value = ast.literal_eval(there.literal)
    elif there.value is None:
        raise ValueError("the value did not travel")
    elif there.value.codec == "weights":
        return _weights(read_blob(there.value.sha256))
    elif there.value.codec == "state":
        raise ValueError("only its state travelled")
    else:
        value = decode(there.value.codec, read_blob(there.value.sha256))
    value = placed(value)
    if content_of(value).exact != there.exact:
        raise ValueError("the value came back as another one")
    return value


def put_state(here: Leaf, there: InputLeaf, read_blob: Callable[[str], bytes]) -> None:
    """Give an object the state that it had in the notebook, in place, if that travels and its build is the same."""
    if there.value is not None and there.value.codec == "state":
        with contextlib.suppress(Exception):  # a library raises what it likes; the object is compared afterwards
            put_only_state(read_blob(there.value.sha256), here.value)


def put_right(here: Leaf, value: Any, *, is_weights: bool = False) -> bool:
    """Give a part of an input the notebook's value; return whether that was possible.

    Weights are taken by their model. What keeps its place keeps those that share it: arrays, tensors, lists and
    dictionaries are changed in place where they can be.
    """
    try:
        if not is_weights and _changed_in_place(here.value, value):
            return True
        if here.put is None:
            return False
        here.put(value)
        _rebind(here.value, value)
    except Exception:  # noqa: BLE001 (a user's own class, or a library's, that does not take it)
        return False
    return True


def _changed_in_place(current: Any, value: Any) -> bool:
    kind = type(current)
    if kind is not type(value):
        return False
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        if current.shape != value.shape or current.dtype != value.dtype or not current.flags.writeable:
            return False
        current[...] = value
    elif hasattr(current, "copy_") and hasattr(current, "untyped_storage"):
        if current.shape != value.shape or current.dtype != value.dtype:
            return False
        current.detach().copy_(value)
    elif kind in (list, deque, set, bytearray):
        current.clear()
        current.update(value) if isinstance(current, set) else current.extend(value)
    elif isinstance(current, MutableMapping) and current.keys() == value.keys():
        for key, part in value.items():
            if not _changed_in_place(current[key], part):
                current[key] = part
    elif kind is dict:
        current.clear()
        current.update(value)
    else:
        return False
    return True


def _rebind(current: Any, value: Any) -> None:
    """Give the program's variables that hold the worker's value the notebook's: functions may read these."""
    if isinstance(current, str | int | float | bool | bytes | tuple | type(None)):
        return  # equal ones may be anything
    names = vars(sys.modules["__main__"])
    for name in [name for name, held in names.items() if held is current]:
        names[name] = value


def _weights(content: bytes) -> list[Any]:
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return [arrays[f"weight_{place}"] for place in range(len(arrays.files))]

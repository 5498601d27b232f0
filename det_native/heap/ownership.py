"""Whose a class, a function or a module is: the user's, a library's, or det_native's own."""

from __future__ import annotations

import functools
import sys
from typing import Any

from det_native.inspection.attributes import is_library_of_ours, is_own_module

#: What a class of det_native has whose objects are treated as those of the user's classes are.
CAN_GO_ON = "_det_can_go_on"


def is_users_module(name: str) -> bool:
    """Whether a module is the notebook, or a file that no package manager has installed."""
    return _is_users_file(name, getattr(sys.modules.get(name), "__file__", None))


@functools.cache
def _is_users_file(name: str, file: str | None) -> bool:
    return is_own_module(name)


def is_users(thing: Any) -> bool:
    """Whether the user wrote a class or a function."""
    name = getattr(thing, "__module__", None)
    return isinstance(name, str) and is_users_module(name)


def is_of_det_native(cls: type) -> bool:
    """Whether objects of a class belong to det_native, and so to their process."""
    name = cls.__module__
    return isinstance(name, str) and is_library_of_ours(name) and not getattr(cls, CAN_GO_ON, False)

"""JAX: arrays, which never change, and keys of random numbers."""

from __future__ import annotations

import sys
from typing import Any

from det_native.inspection.adapter import Content, Ending, Library


class _Array(Ending):
    is_data = True

    def content(self, value: Any, reader: Content) -> bool:
        reader.numbers(sys.modules["numpy"].asarray(value))
        return True


class _Key(_Array):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("key", str(value.dtype))
        reader.go((sys.modules["jax"].random.key_data(value),))
        return True


LIBRARY = Library({"jax.Array": _Array(), "jaxlib.ArrayImpl": _Array(), "jax.PRNGKeyArray": _Key()})

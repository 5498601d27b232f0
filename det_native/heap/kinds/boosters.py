"""Boosters, whose trees lie outside of Python, behind a pointer: read and written as their classes pickle them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, NamedKind, ReadMemory, State, stays
from det_native.heap.kinds.instances import AttributesKind


class BoosterKind(AttributesKind):
    """``Booster``: its state has bytes or a text in the place of the pointer."""

    is_whole = True

    def read(self, obj: Any) -> dict[str, Any]:
        state = obj.__getstate__()
        return {name: bytes(value) if type(value) is bytearray else value for name, value in state.items()}

    def read_state(self, obj: Any) -> State:
        return NamedKind.read_state(self, obj)

    def glance(self, obj: Any, read: ReadMemory) -> State:
        values = self.read(obj)
        facts = [(name, read(memoryview(value))) for name, value in values.items() if type(value) is bytes]
        return [value for value in values.values() if type(value) is not bytes], facts

    def write(self, obj: Any, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        state = {name: value for name, value in {**self.read(obj), **values}.items() if name not in gone}
        other = object.__new__(type(obj))
        other.__setstate__({name: bytearray(v) if type(v) is bytes else v for name, v in state.items()})
        before = vars(obj)
        # The other one frees the trees of before.
        obj.__dict__, other.__dict__ = {n: v for n, v in {**before, **vars(other)}.items() if n not in gone}, before

    def reduced_alone(self, obj: Any) -> Any:
        return self.reduce(obj)


BY_NAME |= {
    "xgboost.core.Booster": BoosterKind(),
    "lightgbm.basic.Booster": BoosterKind(),
    "xgboost.core.DMatrix": stays("data that XGBoost has copied"),
    "lightgbm.basic.Dataset": stays("data that LightGBM has copied"),
}

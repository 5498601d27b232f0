"""The empty tuple is one object for all of a process: what another object has there is not meant by it."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.heap.call import CallSnapshot

numpy = pytest.importorskip("jax.numpy")


def test_an_array_without_dimensions_comes_home_where_an_empty_tuple_had_another_value() -> None:
    def names(held: Any) -> dict[str, Any]:
        return {"__name__": "__main__", "held": held, "params": {"w": numpy.zeros(3), "b": numpy.zeros(())}}

    here, there = names(()), names((1,))
    before, after = CallSnapshot(here), CallSnapshot(there)
    here["params"] = {"w": numpy.ones(3), "b": numpy.ones(())}
    changes = before.changes()
    assert not changes.left_out
    assert after.put(changes.data) == []
    assert (float(there["params"]["b"]), there["params"]["w"].tolist()) == (1.0, [1.0, 1.0, 1.0])

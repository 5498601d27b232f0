"""What a look has changed in objects is taken back in place."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np

from det_native.heap.call import CallSnapshot


class Sequence:
    def __init__(self) -> None:
        self.order = np.arange(4)
        self.read: list[int] = []
        self.generator = np.random.default_rng(1)
        self.stream = random.Random(1)


def test_objects_hold_again_what_they_held() -> None:
    sequence, table, names = Sequence(), np.zeros(200_000), {"fig"}
    given: dict[str, Any] = {"sequence": sequence, "table": table, "names": names, "ring": deque([1], maxlen=2)}
    order = sequence.order
    wanted = sequence.generator.random(), sequence.stream.random()
    sequence.generator, sequence.stream = np.random.default_rng(1), random.Random(1)
    snapshot = CallSnapshot(given, keep_small=True)
    sequence.order[:] = 9
    sequence.order = np.zeros(2)
    sequence.read.append(1)
    sequence.cursor = 1  # type: ignore[attr-defined]
    del sequence.stream
    sequence.generator.random()
    table[3] = 1
    names.add("plum")
    given["ring"].append(5)
    given["new"] = 1
    snapshot.undo()
    assert sequence.order is order
    assert order.tolist() == [0, 1, 2, 3]
    assert sequence.read == []
    assert not hasattr(sequence, "cursor")
    assert (sequence.generator.random(), sequence.stream.random()) == wanted
    assert table[3] == 1, "a large array is not copied"
    assert names == {"fig"}
    assert [*given["ring"]] == [1]
    assert "new" not in given

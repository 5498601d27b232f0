"""What the comparison costs, how much travels, and what happens beyond the limit."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_sides import Names, train
from det_harness.trial import heap_file

from det_native.heap import call, digests
from det_native.heap.call import CallSnapshot


class Item:
    def __init__(self, number: int) -> None:
        self.number = number
        self.tags: list[Any] = []


def test_a_changed_element_sends_its_block() -> None:
    sides = train(lambda: {"table": np.zeros(4 << 20)}, lambda names: names["table"].__setitem__(1_000_000, 1.0))
    assert sides.notebook["table"][1_000_000] == 1.0
    assert len(sides.data) < 5 << 20


def test_what_exceeds_the_limit_is_named_and_comes_when_it_is_asked_for() -> None:
    def fill() -> Names:
        return {"table": np.zeros(1_000_000), "rows": [], "item": Item(1)}

    def change(names: Names) -> None:
        names["table"] += 1
        names["rows"].append(1)
        names["item"].extra = np.ones(500_000)
        names["new"] = {"part": np.ones(300_000)}
        names["row"] = names["rows"], names["table"], names["item"].extra

    sides = train(fill, change, limit=3_000_000)
    assert sides.sentences == [
        f"`{name}` has {size} MB, and 3 MB come home by themselves: det.last_experiment().bring() brings the rest."
        for name, size in [("table", 8), ("row", 4), ("item.extra", 4)]
    ]
    assert sides.notebook["rows"] == [1]
    assert not sides.notebook["table"].any()
    assert not hasattr(sides.notebook["item"], "extra")
    assert sides.notebook["new"]["part"].all()
    home, rows = sides.notebook, sides.notebook["rows"]
    assert sides.bring() == []
    assert home["table"].all()
    assert [id(held) for held in home["row"]] == [id(rows), id(home["table"]), id(home["item"].extra)]


def test_a_checkpoint_has_what_exceeds_the_limit_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "LIMIT", 1_000_000)
    names, home = ({"rows": [1]} for _ in range(2))
    snapshot, at_home = CallSnapshot(names), CallSnapshot(home)
    names |= {"rows": [2], "table": np.ones(1_000_000)}
    heap_file.KeptChanges(lambda: snapshot).save(tmp_path)
    assert (tmp_path / "heap.bin").stat().st_size < 10_000
    [said] = heap_file.bring_home(tmp_path, at_home)
    assert said.startswith("`table` has 8 MB")
    assert home == {"rows": [2]}
    assert heap_file.bring_home(tmp_path, at_home, call.LARGE) == []
    assert home["table"].all()  # type: ignore[attr-defined]


def test_many_large_things_are_left_out_at_once() -> None:
    def change(names: Names) -> None:
        names.update({f"table_{place}": np.ones(50_000 + place) for place in range(40)}, last=1)

    sides = train(dict, change, limit=1_000_000)
    assert sides.notebook["last"] == 1
    assert [name for name in sides.notebook if name != "last"] == ["table_0", "table_1"]
    assert len(sides.sentences) == 38


def test_very_large_arrays_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_WHOLE", 1 << 20)
    sides = train(lambda: {"table": np.zeros(1 << 20)}, lambda names: names["table"].fill(1))
    assert sides.notebook["table"].all()


def test_a_snapshot_holds_no_copies() -> None:
    names = {"table": np.zeros(4 << 20), "text": bytearray(8 << 20)}
    tracemalloc.start()
    try:
        snapshot = CallSnapshot(names)
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
        assert snapshot.changes().left_out == []
    finally:
        tracemalloc.stop()


def test_the_cost_of_many_objects() -> None:
    names: Names = {"items": [Item(number) for number in range(100_000)]}
    started = time.process_time()
    snapshot = CallSnapshot(names)
    made = time.process_time()
    snapshot.changes()
    ended = time.process_time()
    assert made - started < 1.5  # 0.3 on an idle core
    assert ended - made < 0.75  # 0.15


def test_the_cost_of_a_large_array() -> None:
    names: Names = {"table": np.zeros(32 << 20)}
    started = time.process_time()
    CallSnapshot(names)
    assert time.process_time() - started < 0.75  # 0.13 on an idle core, for a quarter of a gigabyte


def test_no_more_objects_are_compared_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.heap.snapshot.MOST_OBJECTS", 1_000)
    worker, home = ({"rows": [[number] for number in range(2_000)], "seen": []} for _ in range(2))
    snapshots = [CallSnapshot(names) for names in (worker, home)]
    worker["rows"][10].append(1)
    worker["rows"][1_990].append(1)
    worker["seen"].append(1)
    changes = snapshots[0].changes()
    assert [sentence for sentence in changes.left_out if "`rows`" in sentence] == changes.left_out != []
    snapshots[1].put(changes.data)
    assert (home["rows"][10], home["rows"][1_990], home["seen"]) == ([10, 1], [1_990], [1])

"""Two trainings that run side by side and change the same: the second one leaves it, and says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from both_sides import Names

from det_native.heap.call import CallSnapshot


class Counted:
    rounds = 0


def _side_by_side(fill: Callable[[], Names], *changes: Callable[[Names], Any]) -> tuple[Names, list[str]]:
    """Return the notebook's names after both trainings have come home, and what was said."""
    names = fill()
    homes = [CallSnapshot(names) for _ in changes]
    sentences = []
    for number, (home, change) in enumerate(zip(homes, changes, strict=True), 1):
        worker = fill()
        snapshot = CallSnapshot(worker)
        change(worker)
        sentences += home.put(snapshot.changes().data, experiment=number)
    return names, sentences


def test_what_both_have_changed_is_as_the_first_one_made_it_and_is_named() -> None:
    def fill() -> Names:
        return {"seen": [0], "rows": np.zeros(3), "note": Counted(), "total": 0}

    def change(names: Names, by: int) -> None:
        names["seen"].append(by)
        names["rows"][by] = by
        names["note"].rounds = by
        names |= {"total": by, "same": 7}

    names, sentences = _side_by_side(fill, lambda n: change(n, 1), lambda n: change(n, 2))
    assert (names["seen"], [*names["rows"]], names["note"].rounds) == ([0, 1], [0, 1, 0], 1)
    assert (names["total"], names["same"]) == (1, 7)
    assert sentences == [
        "Experiments 1 and 2 both changed `total`, `seen`, `rows`, `note.rounds`: here is what experiment 1 made of it."
    ]


def test_keys_members_and_attributes_of_both_come() -> None:
    def fill() -> Names:
        return {"results": {"begun": 1}, "lists": defaultdict(list), "done": {0}, "note": Counted()}

    def change(names: Names, by: int) -> None:
        names["results"][by] = names["lists"][by] = [by]
        names["done"].add(by)
        setattr(names["note"], f"of_{by}", by)

    names, sentences = _side_by_side(fill, lambda n: change(n, 1), lambda n: change(n, 2))
    assert sentences == []
    assert names["results"] == {"begun": 1, 1: [1], 2: [2]}
    assert (names["lists"], names["done"]) == ({1: [1], 2: [2]}, {0, 1, 2})
    assert vars(names["note"]) == {"of_1": 1, "of_2": 2}

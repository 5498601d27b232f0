"""Nothing is put into an object that held something else at the beginning, and nothing is held back without need."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_sides import Names, train

from det_native.heap.call import CallSnapshot


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[Any] = []


def _differing(first: Names, second: Names, change: Any, *, exact: bool = True) -> tuple[Names, list[str]]:
    sides = train(lambda: first, change, notebook=second, exact=exact)
    return sides.notebook, sides.sentences


def test_an_object_that_held_something_else_stays_and_is_named() -> None:
    home, sentences = _differing(
        {"seen": [1], "other": []}, {"seen": [2], "other": []}, lambda n: (n["seen"].append(5), n["other"].append(5))
    )
    assert home == {"seen": [2], "other": [5]}
    assert sentences == ["`seen` stayed as it was: it held something else on the worker when the training began."]


def test_temporary_folders_are_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/temporary")
    home, sentences = _differing(
        {"paths": {"out": "/temporary/tmp_a3", "best": None}, "other": ["/elsewhere/a"]},
        {"paths": {"out": "/temporary/tmpb4", "best": None}, "other": ["/elsewhere/b"]},
        lambda n: (n["paths"].update(best=2), n["other"].append(1)),
    )
    assert home == {"paths": {"out": "/temporary/tmpb4", "best": 2}, "other": ["/elsewhere/b"]}
    assert len(sentences) == 1


def test_state_goes_into_no_neighbour_where_a_set_gave_the_order() -> None:
    def nodes(*names: str) -> Names:
        return {"nodes": [Node(name) for name in names]}

    home, sentences = _differing(
        nodes("fig", "plum", "pear"),
        nodes("plum", "fig", "pear"),
        lambda n: [x.rows.append(x.name) for x in n["nodes"]],
    )
    assert [node.rows for node in home["nodes"]] == [[], [], ["pear"]]
    assert [sentence.split(" ")[0] for sentence in sentences] == ["`nodes[0]`", "`nodes[1]`"]


def test_members_of_a_set_are_known_by_what_they_look_like() -> None:
    def fill() -> Names:
        return {"nodes": {Node("fig"), Node("plum"), Node("pear")}}

    def change(names: Names) -> None:
        for node in names["nodes"]:
            node.rows.append(node.name)
        names["nodes"].discard(next(node for node in names["nodes"] if node.name == "fig"))
        names["nodes"].add(Node("kiwi"))

    sides = train(fill, change)
    assert sides.sentences == []
    assert sorted((node.name, node.rows) for node in sides.notebook["nodes"]) == [
        ("kiwi", []),
        ("pear", ["pear"]),
        ("plum", ["plum"]),
    ]


def test_members_of_a_set_that_look_alike_have_no_address() -> None:
    def fill() -> Names:
        twins = [Node("twin"), Node("twin")]
        twins[0].rows, twins[1].rows = [1], [2]
        return {"nodes": {*twins, Node("fig")}}

    sides = train(fill, lambda names: [node.rows.append(9) for node in names["nodes"]])
    assert sorted(node.rows for node in sides.notebook["nodes"]) == [[1], [2], [9]]
    assert sides.sentences
    assert all("looks like another member of its set" in sentence for sentence in sides.sentences)


def test_the_order_of_a_dict_is_no_difference() -> None:
    home, sentences = _differing(
        {"counts": {"fig": 0, "plum": 0}}, {"counts": {"plum": 0, "fig": 0}}, lambda n: n["counts"].update(fig=1)
    )
    assert (home["counts"], sentences) == ({"fig": 1, "plum": 0}, [])


@pytest.mark.parametrize("exact", [True, False])
def test_with_other_hyperparameters_only_shapes_count(exact: bool) -> None:
    def change(names: Names) -> None:
        names["table"][:] = 7
        names["config"]["lr"] = 7
        names["weights"][:] = 7

    home, sentences = _differing(
        {"table": np.zeros(3), "config": {"lr": 1}, "weights": np.zeros(3)},
        {"table": np.zeros(4), "config": {"lr": 2}, "weights": np.ones(3)},
        change,
        exact=exact,
    )
    assert home["table"].tolist() == [0.0] * 4
    assert home["config"] == ({"lr": 2} if exact else {"lr": 7})
    assert home["weights"].tolist() == ([1.0] * 3 if exact else [7.0] * 3)
    assert len(sentences) == (3 if exact else 1)


def test_paths_in_the_working_folder_are_the_notebooks_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(name: str) -> tuple[Names, CallSnapshot]:
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        names: Names = {"box": Node(f"{tmp_path / name}/out")}
        return names, CallSnapshot(names)

    worker, snapshot = fill("worker")
    worker["box"].rows.append("a")
    worker["box"].best = f"{tmp_path}/worker/best.pt"
    worker["path"] = tmp_path / "worker" / "best.pt"
    data = snapshot.changes().data
    home, snapshot = fill("home")
    assert snapshot.put(data) == []
    assert home["box"].rows == ["a"]
    assert home["box"].best == str(home["path"]) == f"{tmp_path}/home/best.pt"


def test_an_object_of_another_class_stays() -> None:
    home, sentences = _differing({"x": [1]}, {"x": {1: 1}}, lambda names: names["x"].append(2))
    assert home == {"x": {1: 1}}
    assert sentences == ["`x` is of the class builtins.list on the worker: it stayed as it was."]


def test_an_alias_of_an_object_that_differs_is_still_an_alias() -> None:
    home, _ = _differing({"a": [1]}, {"a": [2]}, lambda names: names.update(b=names["a"]))
    assert home["b"] is home["a"]

"""Where a call's changes are looked for: names, variables of functions, what is given, the environment."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import types
from typing import Any

import numpy as np
import pytest
from both_sides import Names, train

from det_native.heap.call import CallSnapshot


class OfDetNative:
    """Stands for a context or an experiment: it belongs to its process."""

    def __init__(self) -> None:
        self.rows: list[int] = []


OfDetNative.__module__ = "det_native.runtime"


class GoesOn(OfDetNative):
    _det_can_go_on = True


GoesOn.__module__ = "det_native.runtime"


def _fit(data: bytes | None) -> Any:
    """Train on the worker; in the notebook, where data are given, put them in place."""
    losses: list[float] = []
    best, counter = None, 0

    def count() -> int:
        return counter

    snapshot = CallSnapshot({}, [sys._getframe()])
    if data is None:
        losses.append(0.5)
        best, counter = {"losses": losses}, 3
        return snapshot.changes().data
    assert snapshot.put(data) == []
    return losses, best, counter, count, snapshot


def test_variables_of_a_running_function_come_home() -> None:
    losses, best, counter, count, _ = _fit(_fit(None))
    assert losses == [0.5]
    assert best is not None
    assert best["losses"] is losses
    assert counter == count() == 3


def test_a_function_that_has_ended_is_passed_over() -> None:
    data = _fit(None)
    *_, snapshot = _fit(data)
    assert snapshot.put(data) == []


def test_what_a_call_is_given_comes_home_under_its_name() -> None:
    given: list[list[Any]] = [[], []]
    snapshots = [CallSnapshot({}, given={"callbacks": [held]}) for held in given]
    given[0].append(1)
    assert snapshots[1].put(snapshots[0].changes().data) == []
    assert given[1] == [1]


def test_only_variables_of_the_environment_that_changed_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEAT_TOKEN", "never sent")
    monkeypatch.setenv("PEAT_GONE", "1")
    worker, home = CallSnapshot({}), CallSnapshot({})
    monkeypatch.setenv("PEAT_LEVEL", "2")
    del os.environ["PEAT_GONE"]
    data = worker.changes().data
    assert b"never sent" not in data
    monkeypatch.delenv("PEAT_LEVEL")
    os.environ["PEAT_GONE"] = "1"
    home.put(data)
    assert os.environ["PEAT_LEVEL"] == "2"
    assert "PEAT_GONE" not in os.environ


def test_objects_of_det_native_stay_what_they_are_in_silence() -> None:
    def fill() -> Names:
        context = OfDetNative()
        return {"context": context, "held": {"context": context, "n": 0}, "experiment": None}

    def change(names: Names) -> None:
        names["context"].rows.append(1)
        names["held"]["n"] = 1
        names["held"]["context"] = OfDetNative()
        names["experiment"] = OfDetNative()
        names["context"] = 5

    sides = train(fill, change)
    assert sides.sentences == []
    assert type(sides.notebook["context"]) is OfDetNative
    assert sides.notebook["context"].rows == []
    assert sides.notebook["held"] == {"context": sides.notebook["context"], "n": 1}
    assert sides.notebook["experiment"] is None


def test_an_object_of_det_native_that_can_go_on_comes_home() -> None:
    sides = train(lambda: {"callback": GoesOn()}, lambda names: names["callback"].rows.append(1))
    assert sides.notebook["callback"].rows == [1]


@pytest.mark.parametrize("file", ["/home/user/peat/__init__.py", None], ids=["package", "namespace"])
def test_a_module_of_the_user_comes_home_name_by_name(monkeypatch: pytest.MonkeyPatch, file: str | None) -> None:
    def package() -> types.ModuleType:
        made, part = types.ModuleType("peat"), types.ModuleType("peat.part")
        made.__file__, part.__file__ = file, "/home/user/peat/part.py"
        made.part, made.tempfile = part, tempfile  # type: ignore[attr-defined]
        part.peat, part.rows, part.count = made, [], 0  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "peat", made)
        monkeypatch.setitem(sys.modules, "peat.part", part)
        return made

    def change(names: Names) -> None:
        names["peat"].part.rows.append(1)
        names["peat"].part.count += 1
        names["peat"].part.new = names["peat"].part.rows
        monkeypatch.setattr(tempfile, "template", "peat")

    sides = train(lambda: {"peat": package()}, change)
    here = sides.notebook["peat"].part
    assert (here.rows, here.count, here.new is here.rows) == ([1], 1, True)
    assert b"template" not in sides.data


def test_a_module_of_a_library_keeps_what_is_its_own_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(names: Names) -> None:
        monkeypatch.setattr(tempfile, "template", "peat")
        monkeypatch.setattr(tempfile, "TMP_MAX", object())
        monkeypatch.setattr(tempfile, "_name_sequence", 5)

    data = train(lambda: {"tempfile": tempfile}, change).data
    monkeypatch.undo()
    own = tempfile.TMP_MAX, tempfile._name_sequence  # type: ignore[attr-defined]
    monkeypatch.setattr(tempfile, "template", "tmp")  # undone at the end
    CallSnapshot({"tempfile": tempfile}).put(data)
    assert tempfile.template == "peat"
    assert (tempfile.TMP_MAX, tempfile._name_sequence) == own  # type: ignore[attr-defined]


def test_names_that_were_bound_since_are_the_users() -> None:
    def fill() -> Names:
        return {"rows": [], "step": 0, "name": "worker's", "gone": 1, "kept": 1}

    worker, home = fill(), fill()
    snapshots = [CallSnapshot(names) for names in (worker, home)]
    worker["rows"].append(1)
    worker |= {"step": 1, "name": "peat", "gone": 2, "loss": 0.5, "new": worker["rows"]}
    del worker["kept"]
    rows = home["rows"]
    home |= {"rows": [], "name": "mine", "loss": "mine", "kept": 3}
    del home["gone"]
    assert snapshots[1].put(snapshots[0].changes().data) == []
    assert rows == [1]
    assert home == {"rows": [], "step": 1, "name": "mine", "loss": "mine", "kept": 3, "new": rows}


def test_a_worker_that_ran_fewer_cells_deletes_nothing() -> None:
    home: Names = {"plot": [1], "rows": [], "old": 1}
    sides = train(lambda: {"rows": [], "old": 1}, lambda names: names["rows"].append(names.pop("old")), notebook=home)
    assert sides.notebook == {"plot": [1], "rows": [1]}
    assert sides.sentences == []


def _model() -> Names:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Linear(200, 100)
    optimizer = torch.optim.Adam(net.parameters())
    return {"net": net, "optimizer": optimizer, "row": net.weight.detach()[0], "rows": []}


def _train_model(names: Names) -> None:
    torch = sys.modules["torch"]
    net = names["net"]
    net(torch.ones(1, 200)).sum().backward()
    optimizer = names["optimizer"]
    optimizer.step()
    optimizer.param_groups[0]["lr"], optimizer.steps, optimizer.seen = 0.5, 1, names["rows"]
    net.note = names["rows"]
    names["best"], names["new_row"] = net.weight, net.weight.detach()[1]
    names["array"] = net.weight.detach().numpy()


@pytest.fixture(scope="session")
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


@pytest.mark.usefixtures("torch_is_warm")
def test_what_is_kept_elsewhere_is_referred_to_and_never_read() -> None:
    sides = train(_model, _train_model, kept=lambda names: [*names["net"].parameters(), names["optimizer"]])
    assert sides.sentences == []
    assert len(sides.data) < 5_000
    net, torch = sides.notebook["net"], sys.modules["torch"]
    assert net.note is sides.notebook["rows"]
    assert sides.notebook["best"] is net.weight
    optimizer = sides.notebook["optimizer"]
    assert (optimizer.state, optimizer.param_groups[0]["lr"]) == ({}, 0.001)
    assert (optimizer.steps, optimizer.seen is sides.notebook["rows"]) == (1, True)
    assert sides.notebook["new_row"].data_ptr() == net.weight[1].data_ptr()
    assert np.shares_memory(sides.notebook["array"], net.weight.detach().numpy())
    assert not torch.equal(net.weight, sides.worker["net"].weight)


def test_a_restarted_worker_goes_on_and_everything_comes_home() -> None:
    def fill() -> Names:
        return {"rows": [], "stream": iter(range(9)), "table": np.zeros(3), "best": None}

    def epoch(names: Names) -> None:
        names["rows"].append(next(names["stream"]))
        names["table"][names["rows"][-1]] = 5
        names["best"] = {"rows": names["rows"], "seen": [*names["rows"]]}

    killed, restarted, home = fill(), fill(), fill()
    snapshots = [CallSnapshot(names) for names in (killed, restarted, home)]
    epoch(killed)
    assert snapshots[1].put(snapshots[0].changes().data) == []
    epoch(restarted)
    assert snapshots[2].put(snapshots[1].changes().data) == []
    assert home["rows"] == [0, 1]
    assert home["table"].tolist() == [5, 5, 0]
    assert home["best"]["rows"] is home["rows"]
    assert home["best"]["seen"] == [0, 1]
    assert next(home["stream"]) == 2


def test_settings_of_libraries_come_home() -> None:
    precision = np.get_printoptions()["precision"]
    try:
        worker, home = CallSnapshot({}), CallSnapshot({})
        np.set_printoptions(precision=3)
        data = worker.changes().data
        np.set_printoptions(precision=precision)
        home.put(data)
        assert np.get_printoptions()["precision"] == 3
    finally:
        np.set_printoptions(precision=precision)

"""What cannot come is left out alone, and named by the way that the user would write."""

from __future__ import annotations

import io
import logging
import os
import queue
import random
import sys
import tempfile
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from both_sides import Names, train
from matplotlib.figure import Figure

from det_native.heap.call import CallSnapshot


class Box:
    """Takes any attribute."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Unpicklable(list[Any]):
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("never")


class Refuses(list[Any]):
    def __reduce__(self) -> Any:
        return Refuses, (), {"n": 1}

    def __setstate__(self, state: Any) -> None:
        raise ValueError("refused")


class Liar:
    """Raises whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("reduce")


def _numbers() -> Any:
    yield from range(10)


def test_a_changed_generator_is_named_and_the_rest_comes() -> None:
    sides = train(
        lambda: {"box": Box(numbers=_numbers(), rows=[]), "idle": _numbers()},
        lambda names: names["box"].rows.append(next(names["box"].numbers)),
    )
    assert sides.notebook["box"].rows == [0]
    assert next(sides.notebook["box"].numbers) == 0
    assert sides.sentences == ["`box.numbers` is a generator: it stayed as it was."]


def test_new_things_that_cannot_come_are_named_where_they_are() -> None:
    def change(names: Names) -> None:
        names["found"] = {"rows": [1, _numbers()], "bad": Unpicklable(), "n": 2}

    sides = train(dict, change)
    assert sides.notebook["found"]["n"] == 2
    assert sides.notebook["found"]["rows"][0] == 1
    assert sides.sentences == [
        "`found['bad']` is of the class Unpicklable, which cannot be pickled (TypeError: never): it stays on the "
        "worker.",
        "`found['rows'][1]` is a generator: it stays on the worker.",
    ]


@pytest.mark.parametrize(
    "make",
    [threading.Lock, threading.Thread, lambda: logging.getLogger("peat"), logging.StreamHandler, threading.Event],
    ids=["lock", "thread", "logger", "handler", "event"],
)
def test_what_belongs_to_the_process_is_left_in_silence(make: Callable[[], Any]) -> None:
    def change(names: Names) -> None:
        names["box"].rows.append(1)
        names["box"].thing = names["new"] = make()

    sides = train(lambda: {"box": Box(thing=make(), rows=[])}, change)
    assert sides.notebook["box"].rows == [1]
    assert sides.sentences == []


@pytest.mark.parametrize("name", ["tqdm", "auto.tqdm", "notebook.tqdm"])
def test_a_bar_brings_how_far_it_is(name: str) -> None:
    module = pytest.importorskip(f"tqdm.{name.split('.')[0]}" if "." in name else "tqdm")
    if "notebook" in name:
        pytest.importorskip("ipywidgets")

    def fill() -> Names:
        return {"bar": module.tqdm(total=3, file=sys.stderr, disable=None), "box": Box(rows=[])}

    def change(names: Names) -> None:
        names["bar"].n += 2
        names["box"].bar = module.tqdm(total=1)
        names["box"].rows.append(names["bar"])

    sides = train(fill, change)
    assert sides.notebook["bar"].n == 2
    assert sides.notebook["box"].rows == [sides.notebook["bar"]]
    assert sides.sentences == []


@pytest.mark.parametrize("drawn", [True, False])
def test_a_figure_is_named_only_if_it_was_drawn_in(drawn: bool) -> None:
    def change(names: Names) -> None:
        names["rows"].append(1)
        if drawn:
            names["line"].set_data([0, 1], [2, 3])
        names["figure"].savefig(io.BytesIO())

    def fill() -> Names:
        figure = Figure()
        return {"figure": figure, "line": figure.subplots().plot([], [])[0], "rows": []}

    sides = train(fill, change)
    assert sides.notebook["rows"] == [1]
    assert sides.sentences == ["`figure` is a figure: it stayed as it was."] * drawn


def test_an_object_that_raises_harms_nobody_else() -> None:
    def change(names: Names) -> None:
        names["rows"].append(1)
        names["liar"] = names["new"] = Liar()
        names["rows"].append(names["kept"])

    sides = train(lambda: {"liar": Liar(), "kept": Liar(), "rows": []}, change)
    assert sides.notebook["rows"][0] == 1
    assert sides.notebook["rows"][1] is sides.notebook["kept"]


def test_an_object_that_refuses_its_state_takes_no_place() -> None:
    def change(names: Names) -> None:
        names["rows"].append([Refuses()])
        names["other"], names["good"] = {"deep": Refuses()}, 2

    both = train(lambda: {"rows": [1], "other": 0, "good": 0}, change)
    assert both.notebook == {"rows": [1], "other": 0, "good": 2}
    assert both.sentences[:2] == ["A new Refuses is incomplete: ValueError: refused."] * 2
    assert sorted(both.sentences[2:]) == [
        "`other` holds what is incomplete: it stayed as it was.",
        "`rows` holds what is incomplete: it stayed as it was.",
    ]


def test_a_module_that_is_missing_loses_its_objects_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("peat_missing")
    exec("class Thing: pass", vars(module))  # noqa: S102
    monkeypatch.setitem(sys.modules, "peat_missing", module)
    worker, home = {"rows": []}, {"rows": []}  # type: Names, Names
    snapshots = [CallSnapshot(names) for names in (worker, home)]
    worker["rows"].append(1)
    worker["thing"] = module.Thing()
    data = snapshots[0].changes().data
    monkeypatch.delitem(sys.modules, "peat_missing")
    (sentence,) = snapshots[1].put(data)
    assert home == {"rows": [1]}
    assert sentence.startswith("peat_missing.Thing is not here")


@pytest.mark.parametrize("reopen", [True, False])
def test_an_open_file_is_opened_again_where_that_is_wanted(tmp_path: Path, reopen: bool) -> None:
    worker, home = {"box": Box(file=None)}, {"box": Box(file=None)}
    snapshots = [CallSnapshot(names) for names in (worker, home)]
    path = tmp_path / "log.txt"
    with path.open("w") as file:
        worker["box"].file = file
        changes = snapshots[0].changes(reopen=lambda obj: (open, (str(path),)) if obj is file else NotImplemented)
    assert changes.left_out == []
    assert snapshots[1].put(changes.data, reopen=reopen) == []
    here = home["box"].file
    assert (here is not None) is reopen
    if reopen:
        assert here.name == str(path)
        here.close()


def test_a_file_that_is_written_on_stands_where_the_other_process_has_left_it(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with path.open("w") as first, path.open("r+") as second:
        worker, home = {"log": first, "rows": [first]}, {"log": second, "rows": [second]}
        snapshots = [CallSnapshot(names) for names in (worker, home)]
        first.write("line\n")
        changes = snapshots[0].changes()
        assert changes.left_out == []
        assert snapshots[1].put(changes.data) == []
        assert home == {"log": second, "rows": [second]}
        assert second.tell() == first.tell() == 5


class Wants(dict[str, Any]):
    """Its pickle lacks an argument."""

    def __init__(self, needed: int) -> None:
        super().__init__()

    def __reduce__(self) -> Any:
        return Wants, ()


def test_an_object_that_cannot_be_made_again_is_named_by_its_class() -> None:
    sides = train(lambda: {"rows": []}, lambda names: names["rows"].extend([1, Wants(1)]))
    assert sides.notebook["rows"][0] == 1
    assert len(sides.sentences) == 1
    assert sides.sentences[0].startswith("A new Wants cannot be made here: TypeError")


def test_deep_structures_and_cycles_come_home() -> None:
    def change(names: Names) -> None:
        for _ in range(10_000):
            names["deep"] = [names["deep"]]
        names["cycle"].append(names["cycle"])
        innermost(names["chain"]).append(1)

    def innermost(chain: Any) -> Any:
        for _ in range(10_000):
            (chain,) = chain
        return chain

    def fill() -> Names:
        chain: list[Any] = []
        for _ in range(10_000):
            chain = [chain]
        return {"deep": 7, "cycle": [], "chain": chain}

    sides = train(fill, change)
    assert innermost(sides.notebook["deep"]) == 7
    assert innermost(sides.notebook["chain"]) == [1]
    assert sides.notebook["cycle"][0] is sides.notebook["cycle"]


def test_a_queue_keeps_its_lock() -> None:
    sides = train(lambda: {"jobs": queue.Queue()}, lambda names: names["jobs"].put(1))
    assert sides.notebook["jobs"].get(timeout=1) == 1


def test_a_bare_object_is_the_same_one() -> None:
    sides = train(lambda: {"unset": object(), "rows": []}, lambda names: names["rows"].append(names["unset"]))
    assert sides.notebook["rows"][0] is sides.notebook["unset"]
    assert sides.sentences == []


def test_an_object_that_takes_too_long_is_read_once_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow(random.Random):
        def getstate(self) -> Any:
            nonlocal now
            now += 60
            return super().getstate()

    monkeypatch.setattr("det_native.heap.snapshot.time", types.SimpleNamespace(monotonic=lambda: now))
    sides = train(
        lambda: {"stream": Slow(1), "rows": []}, lambda names: (names["stream"].random(), names["rows"].append(1))
    )
    assert sides.notebook["rows"] == [1]
    assert sides.sentences == ["`stream` takes too long to compare: it stayed as it was."]
    assert now == 120


def test_files_in_a_temporary_folder_stay_and_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fill() -> Names:
        return {"out": tempfile.mkdtemp(), "run": Box(folder=Path(tempfile.mkdtemp())), "cache": ""}

    def change(names: Names) -> None:
        (Path(names["out"]) / "read.txt").write_text("1")
        (names["run"].folder / "inner").mkdir()
        (names["run"].folder / "inner" / "row.txt").write_text("1")

    def read_only(names: Names) -> None:
        os.listdir(names["out"])

    wanted = [
        f"`{way}` is a temporary folder: files that the training wrote there stayed on the worker. "
        "Write them into the working folder."
        for way in ("out", "run.folder")
    ]
    assert train(fill, change).sentences == wanted
    assert train(fill, read_only).sentences == []


def test_notes_of_tables_and_records_come_home() -> None:
    def change(names: Names) -> None:
        names["df"].attrs["n"] += 1
        names["df"].attrs["rows"] = names["rows"]
        names["column"].attrs = {"new": [1]}
        names["records"]["a"][1] = 5
        names["named"].b[0] = names["rows"]
        names["kept"].attrs["n"] = names["kept"].loc[0, "name"] = 4

    def fill() -> Names:
        df, column, kept = pd.DataFrame({"name": [1, 2]}), pd.Series([1]), pd.DataFrame({"name": [1, 2]})
        df.attrs["n"] = 1
        records = np.zeros(2, [("a", "i4"), ("b", "f8")])
        named = np.rec.array([(1, None)], dtype=[("a", "i4"), ("b", object)])
        return {"df": df, "column": column, "kept": kept, "records": records, "named": named, "rows": [1]}

    both = train(fill, change)
    home = both.notebook
    assert both.sentences == []
    assert home["df"].attrs == {"n": 2, "rows": [1]}
    assert home["df"].attrs["rows"] is home["rows"] is home["named"].b[0]
    assert home["column"].attrs == {"new": [1]}
    assert home["records"].tolist() == [(0, 0.0), (5, 0.0)]
    assert (home["kept"].attrs, home["kept"]["name"].tolist()) == ({"n": 4}, [4, 2])


def test_the_globals_of_a_module_that_a_cell_made_come_home() -> None:
    def fill() -> Names:
        tools = types.ModuleType("tools_of_a_cell")
        exec("calls, count = {'n': 0}, 0", vars(tools))  # noqa: S102
        exec("def track():\n    global count, new\n    calls['n'] += 1; count += 1; new = [count]", vars(tools))  # noqa: S102
        return {"tools": tools, "rows": []}

    both = train(fill, lambda names: (names["tools"].track(), names["rows"].append(names["tools"].calls)))
    tools = both.notebook["tools"]
    assert both.sentences == []
    assert (tools.calls, tools.count, tools.new) == ({"n": 1}, 1, [1])
    assert both.notebook["rows"][0] is tools.calls
    tools.track()
    assert tools.calls == {"n": 2}


def test_what_hangs_on_an_optimizer_comes_home_beside_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))  # any optimizer makes it

    def fill() -> Names:
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        opt.seen, opt.best = [], None
        return {"net": net, "opt": opt, "schedule": torch.optim.lr_scheduler.StepLR(opt, 1)}

    def change(names: Names) -> None:
        opt = names["opt"]
        opt.state[names["net"].weight]["momentum"] = torch.ones(1, 2)
        opt.param_groups[0]["lr"] = 0.01
        opt.seen.append(3)
        opt.best, opt.mine = 0.5, opt.seen

    both = train(fill, change, kept=lambda names: [*names["net"].parameters(), names["opt"], names["schedule"]])
    opt = both.notebook["opt"]
    assert both.sentences == []
    assert (opt.seen, opt.best, opt.mine is opt.seen) == ([3], 0.5, True)
    assert (opt.state, opt.param_groups[0]["lr"]) == ({}, 0.1)  # which the framework's file has

"""Tables of what some roots lead to: equal for equal content in every process, others for other content."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import subprocess
import sys
import threading
import types
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from det_native.heap.compare import MOST_ENTRIES, Table, differences, is_rounding
from det_native.pytorch.native_call import inputs_of_loader

pytestmark = pytest.mark.hypothesis


def _differing(there: Any, here: Any) -> list[str]:
    """Return what differs between two values, or two mappings of them, by title."""
    tables = [Table(value if type(value) is dict else {"x": value}) for value in (there, here)]
    return [entry.title for _, entry, _ in differences(tables[0].entries, tables[1].entries)]


def _are_rounding(one: Any, other: Any) -> bool:
    tables = [Table({"x": value}).entries for value in (one, other)]
    found = [is_rounding(there, here) for _, there, here in differences(*tables)]
    assert found
    return all(found)


MADE = """
import numpy as np, pandas as pd, torch
from torch.utils.data import TensorDataset, Subset
rows = np.arange(6000, dtype="float32").reshape(2000, 3)
names = {f"name {number}" for number in range(50)}
values = {
    "array": rows, "column": rows[:, 1], "integers": rows.astype(int), "texts": np.array(["a", "b"], object),
    "table": pd.DataFrame({"a": rows[:, 0], "b": ["x", "y"] * 1000}),
    "tensor": torch.tensor(rows), "half": torch.tensor(rows).bfloat16(), "scalar": torch.tensor(1.5),
    "dataset": Subset(TensorDataset(torch.tensor(rows)), [5, 3, 1]),
    "model": torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.3)).apply(lambda m: [
        torch.nn.init.ones_(p) for p in m.parameters()] and None),
    "set": names, "mapping": {name: len(name) for name in names}, "function": lambda x: x in {"a", "b", "c"},
    "nested": [1, 2.5, (None, "text", b"bytes"), {"k": True}],
}
"""

_namespace: dict[str, Any] = {"__name__": "__main__"}
exec(MADE, _namespace)  # noqa: S102
VALUES: dict[str, Any] = _namespace["values"]


def test_another_process_has_the_same() -> None:
    script = f"{MADE}\nimport json\nfrom det_native.heap.compare import Table\n" + (
        "print(json.dumps({key: entry[2:6] for key, entry in Table(values).entries.items()}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env={**os.environ, "PYTHONHASHSEED": "7"}, check=True
    )
    here = {key: entry[2:6] for key, entry in Table(VALUES).entries.items()}
    assert json.loads(told.stdout) == json.loads(json.dumps(here))


def test_a_large_set_is_the_same_in_whatever_order_it_gives_its_elements() -> None:
    names = [f"name {number}" for number in range(6_000)]
    backwards = set[str]()
    for name in reversed(names):
        backwards.add(name)
    assert _differing(set(names), backwards) == []
    assert _differing(set(names), set(names[1:])) == ["x"]


@dataclass
class Records:
    """A user's own dataset."""

    rows: Any
    names: dict[str, int] = field(default_factory=dict)


CHANGES = [
    pytest.param(np.arange(6.0), np.arange(6.0) * -1, id="sign"),
    pytest.param(np.arange(6.0), np.arange(6.0)[::-1], id="order"),
    pytest.param(np.arange(6.0), np.arange(6.0).reshape(2, 3), id="shape"),
    pytest.param(np.arange(6.0), np.arange(6.0, dtype="float32"), id="type"),
    pytest.param(np.arange(6), np.array([0, 1, 2, 3, 4, 6]), id="one integer"),
    pytest.param(np.array(["a", "b"], object), np.array(["a", "c"], object), id="one text"),
    pytest.param(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [2, 1]}), id="rows of a table"),
    pytest.param(pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["x", "z"]}), id="texts of a table"),
    pytest.param(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), id="name of a column"),
    pytest.param(torch.ones(3), torch.zeros(3), id="tensor"),
    pytest.param(VALUES["dataset"], torch.utils.data.Subset(VALUES["dataset"].dataset, [5, 1, 3]), id="a random split"),
    pytest.param(VALUES["model"], torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)), id="a model"),
    pytest.param(Records([1, 2]), Records([1, 3]), id="a user's dataset"),
    pytest.param(Records([1]), Records([1], names={"a": 1}), id="a dictionary of a dataset"),
    pytest.param([1, 2], (1, 2), id="kind of a sequence"),
    pytest.param({"lr": 0.1}, {"lr": 0.2}, id="a setting"),
    pytest.param(lambda x: x + 1, lambda x: x + 2, id="a function"),
]


@pytest.mark.parametrize(("one", "other"), CHANGES)
def test_other_content_is_another(one: Any, other: Any) -> None:
    assert _differing({"x": one}, {"x": other})


@pytest.mark.parametrize("number", [np.float64, np.float32, np.complex128, np.int64])
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: [[]] * 3 + [[value]]])
def test_a_number_of_numpy_is_compared_wherever_it_is(number: Any, wrap: Any) -> None:
    assert not _differing({"x": wrap(number(2))}, {"x": wrap(number(2))})
    assert _differing({"x": wrap(number(2))}, {"x": wrap(number(3))})
    many: list[Any] = [[] for _ in range(MOST_ENTRIES)]
    assert _differing({"x": [*many, wrap(number(2))]}, {"x": [*many, wrap(number(3))]})


def test_memory_that_no_tensor_shows_does_not_count() -> None:
    """PyTorch leaves there what was in it: the result of ``mse_loss()`` has room for all squares."""

    def results(*, hidden: float, shown: float = 1.0) -> dict[str, Any]:
        memory = torch.tensor([shown, hidden, hidden])
        return {"x": {"loss": memory[0]}}

    assert not _differing(results(hidden=2.0), results(hidden=3.0))
    assert _differing(results(hidden=2.0), results(hidden=2.0, shown=4.0))
    both = [{"x": [memory[0], memory]} for memory in (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))]
    assert _differing(*both)


def test_large_arrays_are_seen_in_their_whole_length() -> None:
    large = np.zeros(5_000_000)
    before = Table({"x": large})
    large[-3:] = 1
    assert [*differences(before.entries, Table({"x": large}).entries)]
    slow = np.zeros((5_000, 1_000)).T
    assert _differing(slow, slow.copy(order="K")) == []


def test_looking_draws_nothing_and_iterates_nothing() -> None:
    class Watched:
        def __iter__(self) -> Any:
            raise AssertionError("it was iterated")

        def __getitem__(self, index: int) -> Any:
            raise AssertionError("a record was read")

        def __len__(self) -> int:
            return 3

    state = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    loader = torch.utils.data.DataLoader(Watched(), batch_size=2, shuffle=True)  # type: ignore[arg-type]
    Table({"watched": Watched(), "loader": loader, "numbers": iter([1, 2])})
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == state


@pytest.mark.filterwarnings("error")
def test_infinities_of_both_signs_give_no_warning() -> None:
    both = np.array([np.inf, -np.inf])
    assert not _are_rounding(both, -both)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(_plain, _plain)
def test_equal_plain_values_and_only_they_are_equal(one: Any, other: Any) -> None:
    equal = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    same = not _differing({"x": one}, {"x": other})
    assert same or not equal
    absolute = '"/' in json.dumps([one, other])  # of which the folders do not count
    assert equal or not same or absolute


@pytest.mark.parametrize("size", [2_000, 200_000, pytest.param(4_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("place", [0.0, 0.31, 0.777_777])
def test_one_number_that_is_far_off_is_no_rounding(size: int, place: float) -> None:
    rows = np.linspace(0, 1, size, dtype="float32")
    other = rows.copy()
    other[int(place * size)] = 30
    assert not _are_rounding(rows, other)
    assert _are_rounding(rows, rows * np.float32(1 + 1e-6))


def test_some_numbers_that_are_swapped_with_others_are_no_rounding() -> None:
    rows = np.random.default_rng(3).normal(size=(5_000, 8)).astype("float32")
    other = rows.copy()
    other[1000:1500] = rows[2000:2500]
    assert not _are_rounding(rows, other)


def _streams(first: float, text: str) -> dict[str, Any]:
    numbers = [first, 2.0, 3.0]
    listed, counted = iter(numbers), enumerate(itertools.chain(numbers, [4.0]))
    next(counted)
    return {"list": listed, "chain": counted, "map": map(math.sqrt, numbers), "file": io.StringIO(text)}


def test_iterators_and_files_in_memory_are_compared_where_they_are() -> None:
    streams = _streams(1.0, "ok")
    assert _differing(streams, _streams(1.0, "ok")) == []
    others = _streams(5.0, "no")
    assert {title.partition("[")[0] for title in _differing(streams, others)} == {*streams}
    assert [next(others[name]) for name in ("list", "chain", "map")] == [5.0, (1, 2.0), math.sqrt(5.0)]


def test_an_input_that_is_not_compared_is_named() -> None:
    assert Table({"x": csv.reader([])}).not_compared == ["x is not compared on the worker: reader cannot be read."]


_RANDOM = np.random.default_rng(0)
_ROWS = _RANDOM.random((2_000, 64), dtype="float32")
_LAYERS = [_RANDOM.random((256, 256), dtype="float32") for _ in range(12)]


def _with(array: Any, where: Any, value: Any) -> Any:
    other = array.copy()
    other[where] = value
    return other


OTHER_DATA = [
    pytest.param(_ROWS, _with(_ROWS, slice(300, 302), 100.0), id="two rows far off"),
    pytest.param(_ROWS, _with(_ROWS, 77, _ROWS[78]), id="a row that is another row"),
    pytest.param(_ROWS[:, 0], _with(_ROWS[:, 0], [0, 1999], _ROWS[[1999, 0], 0]), id="two numbers that changed places"),
    pytest.param(_ROWS[:, 0], _with(_ROWS[:, 0], slice(7, None, 50), -1.0), id="some targets that are missing"),
    pytest.param(_LAYERS, [*_LAYERS[:-1], _LAYERS[-1] * 0], id="the last of many layers"),
    pytest.param([np.ones(3)] * 6_000, [np.ones(3)] * 5_100 + [np.zeros(3)] * 900, id="the end of a long list"),
    pytest.param([0.5] * 3_000, [0.5] * 2_999 + [0.6], id="the last of a list of floats"),
    pytest.param(np.arange(2000.0, 2024), np.arange(2001.0, 2025), id="numbers with a large offset"),
    pytest.param({"lr": 0.1, "seed": [1.0]}, {"lr": 0.1001, "seed": [1.0]}, id="a setting"),
    pytest.param(np.c_[_ROWS[:, 0] * 1e6, _ROWS[:, 1] > 0.5], np.c_[_ROWS[:, 0] * 1e6, _ROWS[:, 1] > 0.4], id="flags"),
    pytest.param(_with(_ROWS, (3, 4), np.nan), _with(_ROWS, ([3, 5], [4, 5]), np.nan), id="one more that is missing"),
]


@pytest.mark.parametrize(("one", "other"), OTHER_DATA)
def test_other_data_are_no_rounding(one: Any, other: Any) -> None:
    assert not _are_rounding(one, other)


_OFFSET = _ROWS * 3 + 50
LAST_DIGITS = [
    pytest.param(_ROWS, _ROWS * (1 + 3e-4 * _RANDOM.normal(size=_ROWS.shape)).astype("float32"), id="short products"),
    pytest.param(
        (_OFFSET - _OFFSET.mean(0)) / _OFFSET.std(0),
        ((_OFFSET - _OFFSET.mean(0, dtype=float)) / _OFFSET.std(0, dtype=float)).astype("float32"),
        id="means added up in another order",
    ),
    pytest.param(_with(_ROWS * 1.0, (3, 4), np.inf), _with(_ROWS * (1 + 1e-6), (3, 4), np.inf), id="some not finite"),
    pytest.param([0.1, [2.5]], [0.1 + 1e-12, [2.5]], id="single numbers"),
    pytest.param(_LAYERS, [layer * np.float32(1 + 1e-6) for layer in _LAYERS], id="weights"),
    pytest.param(torch.tensor(_ROWS).half(), torch.tensor(_ROWS * 1.0005).half(), id="half precision"),
    pytest.param(np.c_[_ROWS, _ROWS[:, :1] * 0], np.c_[_ROWS * 1.000001, _ROWS[:, :1] * 0 + 1e-17], id="nothing"),
]


@pytest.mark.parametrize(("one", "other"), LAST_DIGITS)
def test_last_digits_are_rounding(one: Any, other: Any) -> None:
    assert _are_rounding(one, other)
    assert _are_rounding(other, one)


def test_what_is_known_is_bounded() -> None:
    entries = Table({"x": [[number] for number in range(30_000)], "y": _LAYERS}).entries
    assert len(entries) < 11_000
    numbers = [[number] for number in range(29_999)]
    assert _differing({"x": [*numbers, [1]]}, {"x": [*numbers, [2]]}) == ["x:  and what is behind its first parts"]


def test_a_generator_is_compared_by_its_code_and_arguments() -> None:
    def rows(count: int) -> Any:
        yield from range(count)

    begun = rows(3)
    next(begun)
    assert _differing(begun, rows(3)) == []
    assert _differing(rows(4), rows(3)) == ["x"]


def test_paths_are_those_of_the_users_folder_wherever_the_code_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook, work = tmp_path / "notebook", tmp_path / "worker"
    (notebook / "data").mkdir(parents=True)
    work.mkdir()
    names = ("out/best.pt", "data/x.csv", ".")
    monkeypatch.chdir(notebook / "data")
    there = Table({name: str(notebook / name) for name in names}, folder=str(notebook)).entries
    monkeypatch.chdir(work)
    here = Table({name: str(work / name) for name in names}, folder=str(work)).entries
    assert not [*differences(there, here)]
    other = Table(dict.fromkeys(names, str(work / "best.pt")), folder=str(work)).entries
    assert len([*differences(there, other)]) == 3


def test_who_shares_what_counts() -> None:
    one, other = [1], [1]
    assert _differing([one, one], [one, other]) == ["x"]
    assert _differing({"x": one, "y": [one]}, {"x": one, "y": [other]}) == ["y"]


DATA = TensorDataset(torch.arange(6))


def _other(one: list[Any]) -> Any:
    return one[0]


def _loader(**settings: Any) -> dict[str, Any]:
    return {name: given.value for name, given in inputs_of_loader("x", DataLoader(DATA, **settings)).items()}


def _weighted(last: float) -> Any:
    return WeightedRandomSampler([1.0, 1, 1, 1, 1, last], 6)


def test_how_a_loader_picks_records_is_compared_and_the_size_of_batches_is_the_configurations() -> None:
    first = _loader(batch_size=2, shuffle=True)
    assert _differing(first, _loader(batch_size=3, shuffle=True, num_workers=2)) == []
    used = DataLoader(DATA, batch_size=2, shuffle=True)
    list(used)
    assert _differing(first, {name: given.value for name, given in inputs_of_loader("x", used).items()}) == []
    assert _differing(first, _loader(batch_size=2))
    assert _differing(first, _loader(batch_size=2, shuffle=True, drop_last=True))
    assert _differing(first, _loader(batch_size=2, shuffle=True, collate_fn=_other))
    assert _differing(_loader(sampler=_weighted(1)), _loader(sampler=_weighted(1))) == []
    assert _differing(_loader(sampler=_weighted(1)), _loader(sampler=_weighted(9)))


NOTEBOOK = """
import functools, logging, os, time
import numpy as np
import torch
from pathlib import Path

weights = torch.ones(10)
alpha = 0.5
names = {"a": 1}
classes = ["x", "y"]
options = {"size": 3}
step, unseen = 0, 7
history, totals, best, curves = [], {"n": 0}, {"loss": 1.0}, {"loss": []}
bank = np.zeros(4)
logger = logging.getLogger("notebook")
began = time.time()
folder = Path("/tmp") / str(os.getpid())
teacher = torch.nn.Linear(2, 2)
torch.nn.init.ones_(teacher.weight), torch.nn.init.ones_(teacher.bias)

class Settings:
    def __init__(self):
        self.rate = 0.1
        self.calls = 0
    def __call__(self, x):
        self.calls += 1
        return x * self.rate

settings = Settings()

class Mean:
    def __init__(self, decay):
        self.decay = decay
        self.reset()
    def reset(self):
        self.total = 0
    def take_in(self, value):
        self.total += value * self.decay

smooth = Mean(0.9)

def scaled(x):
    return x * alpha

def focal(gamma):
    def loss(x):
        return x ** gamma
    return loss

loss = focal(2)

def train_batch(batch):
    global step
    step += 1
    history.append(batch)
    totals["n"] += len(classes)
    curves["loss"].append(1)
    smooth.take_in(1)
    bank[step % 4] = batch
    if best["loss"] > 1:
        best.update(loss=0)
    logger.info("%s %s %s %s", began, folder, options, settings(1))
    return loss(scaled(batch)) * weights * names["a"], teacher

class Net(torch.nn.Module):
    def forward(self, x):
        return x * unseen

trains = functools.partial(train_batch)
"""


@pytest.fixture
def made() -> Iterator[Any]:
    """Gives a notebook's names, of which some are bound anew."""
    kept = sys.modules["__main__"]

    def run(**changes: Any) -> dict[str, Any]:
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(NOTEBOOK, "cell", "exec"), module.__dict__)  # noqa: S102
        module.__dict__.update(changes)
        return module.__dict__

    yield run
    sys.modules["__main__"] = kept


def _read(names: dict[str, Any]) -> dict[str, Any]:
    return {"train_batch": names["trains"], "model": names["Net"]()}


def _names(there: dict[str, Any], here: dict[str, Any]) -> set[str]:
    return {title.partition(",")[0] for title in _differing(_read(there), _read(here))}


def test_the_same_notebook_reads_the_same(made: Any) -> None:
    parts = {entry.part.partition(",")[0] for entry in Table(_read(made())).entries.values()}
    read = {"weights", "alpha", "names", "classes", "options", "settings", "teacher", "unseen", "step", "history"}
    assert read | {"the function train_batch", "the function scaled"} <= parts
    first = made()
    assert _names(first, made(began=first["began"], folder=first["folder"])) == set()


def test_what_functions_have_changed_differs(made: Any) -> None:
    first = made()
    used = made(began=first["began"])
    used["trains"](1)
    assert _names(first, used) == {"step", "history", "totals", "curves", "bank", "smooth", "settings"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", torch.ones(10) * 2),
        ("alpha", 0.6),
        ("names", {"a": 2}),
        ("classes", ["y", "x"]),
        ("options", {"size": 4}),
        ("unseen", 8),
        ("teacher", torch.nn.Linear(2, 2)),
    ],
)
def test_another_value_that_a_function_reads_is_told_by_name(made: Any, name: str, value: Any) -> None:
    first = made()
    assert _names(first, made(began=first["began"], **{name: value})) == {name}


def test_closures_and_other_code_are_compared(made: Any) -> None:
    first = made()
    other = made(began=first["began"])
    other["loss"] = other["focal"](3)
    assert _names(first, other) == {"the function focal.<locals>.loss.gamma"}
    other = made(began=first["began"])
    other["scaled"] = eval(compile("lambda y: y + alpha", "other cell", "eval"), other)  # noqa: S307
    assert "the function scaled" in _names(first, other)


def _sparse(*numbers: float) -> Any:
    return pytest.importorskip("scipy.sparse").csr_matrix([numbers])


def _image(*numbers: int) -> Any:
    return pytest.importorskip("PIL.Image").fromarray(np.array([numbers], "uint8"))


def _scaler(*numbers: float) -> Any:
    return StandardScaler().fit(np.array(numbers).reshape(-1, 1))


def _jax(*numbers: float) -> Any:
    return pytest.importorskip("jax.numpy").array(numbers)


def _polars(*numbers: float) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"n": list(numbers), "text": [str(number) for number in numbers]})


MAKERS = [
    *(np.array, pd.Series, pa.array, lambda *n: pa.table({"n": n, "text": [*map(str, n)]}), _sparse, _image, _scaler),
    *(_jax, _polars, lambda *n: pd.DataFrame({"n": n, "text": [*map(str, n)]})),
]
NAMES = ["numpy", "column", "arrow", "arrow table", "sparse", "image", "estimator", "jax", "polars", "table"]


def _made(make: Callable[..., Any], *numbers: float) -> Any:
    return make(numbers) if make in (np.array, pd.Series, pa.array) else make(*numbers)


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_equal_content_is_equal_and_other_content_is_another(make: Callable[..., Any]) -> None:
    some, same, other = _made(make, 1, 2), _made(make, 1, 2), _made(make, 1, 3)
    assert _differing(some, same) == []
    assert _differing(some, other)
    assert Table({"x": some}).not_compared == []


@dataclass
class Holder:
    """Keeps what belongs to its process."""

    held: Any


def test_what_belongs_to_its_process_is_neither_compared_nor_named() -> None:
    drawn, empty = Figure(), Figure()
    drawn.subplots().plot([1, 2])
    for there, here in ((threading.Lock(), threading.Lock()), (drawn, empty)):
        assert _differing(Holder(there), Holder(here)) == []
    assert Table({"x": Holder(threading.Lock())}).not_compared == []


def test_what_cannot_be_read_is_named() -> None:
    name = "x is not compared on the worker: Compress cannot be read."
    assert Table({"x": zlib.compressobj()}).not_compared == [name]


def _records(loss: float = 2.0) -> Any:
    inner = [("a", "i4"), ("b", "f4")]
    return np.array([(1, loss, (3, 4.0)), (2, 0.5, (5, 6.0))], [("n", "i1"), ("loss", "f8"), ("in", inner)])


def test_records_are_compared_field_by_field() -> None:
    aligned = np.dtype([("n", "i1"), ("x", "f8")], align=True)
    between = [np.frombuffer(bytes([1, *[filler] * 7, *np.float64(2.0).tobytes()]), aligned) for filler in (0, 9)]
    assert _differing(*between) == []  # what lies between the fields
    for made in (lambda x: _records(x), lambda x: _records(x).view(np.recarray)):
        assert Table({"x": made(2.0)}).not_compared == []
        assert _differing(made(2.0), made(2.0)) == []
        assert _differing(made(2.0), made(3.0)) == ["x"]
        assert _are_rounding(made(2.0), made(2.0 + 1e-15))
    inner = _records()
    inner["in"]["a"][1] = 9
    assert _differing(_records(), inner) == ["x"]


def test_records_with_objects_are_compared() -> None:
    def rows(number: int, text: str) -> Any:
        return pd.DataFrame({"a": [1, number], "b": ["x", text]}).to_records()

    for made in (rows, lambda number, text: {"x": pd.DataFrame({"a": [number]}).to_records(), "y": [text]}):
        assert _differing(made(2, "y"), made(2, "y")) == []
        assert _differing(made(2, "y"), made(3, "y"))
        assert _differing(made(2, "y"), made(2, "z"))


def test_notes_of_a_table_are_compared() -> None:
    def table(note: Any, kind: Any = pd.DataFrame) -> Any:
        made = kind({"name": [1, 2]})
        made.attrs["note"] = [note]
        return made

    for kind in (pd.DataFrame, pd.Series):
        assert _differing(table(1, kind), table(1, kind)) == []
        assert _differing(table(1, kind), table(2, kind)) == ["x.attrs['note']"]


def test_what_a_computation_gave_is_compared_by_its_value() -> None:
    loss = (torch.ones(3, requires_grad=True) * 2).sum()
    assert _differing(loss, loss.detach().clone()) == []
    assert _differing(loss, torch.tensor(5.0)) == ["x"]
    assert _differing(torch.ones(3, requires_grad=True), torch.ones(3)) == ["x"]

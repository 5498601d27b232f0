"""Inputs that differ on a worker and travel: the worker takes the notebook's, and says so."""

from __future__ import annotations

import datetime
import functools
import importlib
import os
import tempfile
import time
import types
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from det_harness.program.inputs import InputCheck
from sklearn.preprocessing import StandardScaler
from torch.utils.data import TensorDataset

from det_native.errors import InputDiffersError
from det_native.experimental.early_contents import EarlyContents
from det_native.experimental.proof import VALUES_LIMIT, NotedInputs, proof_of
from det_native.heap.roots import running_loop
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import Program
from det_native.schema.proof import CallProof, Input
from det_native.schema.rest import CaptureRow


class Call:
    """A training call that is given these inputs, and this function."""

    models = ()

    def __init__(self, parts: dict[str, Any], train_batch: Any = None) -> None:
        self.parts = {
            name: part if isinstance(part, Input) else Input(part, assign=functools.partial(self._assign, name))
            for name, part in parts.items()
        }
        if train_batch is not None:
            self.parts["train_batch"] = Input(train_batch, "code")

    def _assign(self, name: str, value: Any) -> None:
        self.parts[name] = Input(value)

    def value(self, name: str = "x") -> Any:
        return self.parts[name].value

    def inputs(self) -> dict[str, Input]:
        return dict(self.parts)


def noted(call: Call, early: EarlyContents | None = None) -> NotedInputs:
    found = proof_of(call, TrialEnvironment(config={}, hparams={}), early)
    assert found is not None
    return NotedInputs(CallProof.model_validate_json(found.proof.model_dump_json()), found.values)


def compared(there: NotedInputs, call: Call, **options: Any) -> list[CaptureRow]:
    """Compare a call on the worker; return the rows that the report gets."""
    rows: list[CaptureRow] = []
    program = Program(kind="cells", framework="torch")
    check = InputCheck(
        there.proof,
        program,
        "error",
        program.title,
        read_blob=there.values.__getitem__,
        add_rows=rows.extend,
        **options,
    )
    check.compare(call)
    return rows


@dataclass
class Settings:
    """A user's own."""

    rate: float
    names: list[str]


@dataclass
class Slotted:
    """A user's own, without a dictionary."""

    __slots__ = ("rows",)
    rows: Any


VALUES: dict[str, tuple[Any, Any]] = {
    "number": (1, 2),
    "text": ("adam", "sgd"),
    "infinite": (float("inf"), 1.0),
    "not a number": (1.0, float("nan")),
    "date": (datetime.date(2001, 2, 3), datetime.date(2002, 2, 3)),
    "array": (np.arange(6), np.arange(6)[::-1].copy()),
    "array of another shape": (np.arange(6), np.arange(5)),
    "array that is not to be written to": (np.arange(6), np.broadcast_to(np.int64(3), 6)),
    "objects": (np.array(["a", None], object), np.array(["b", None], object)),
    "tensor": (torch.ones(3), torch.zeros(3)),
    "tensor of another type": (torch.ones(3), torch.ones(3, dtype=torch.int64)),
    "table": (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), pd.DataFrame({"a": [2, 1], "b": ["x", "y"]})),
    "column": (pd.Series([1.5, 2.5], [5, 6]), pd.Series([1.5, 3.5], [5, 6])),
    "list of texts": (["cat", "dog"], ["dog", "cat"]),
    "nested": ([1, (2, [3])], [1, (2, [4])]),
    "long list": (list(range(3_000)), list(range(1, 3_001))),
    "set": ({1, 2}, {1, 3}),
    "dictionary": ({"a": 1, "b": [1]}, {"b": [2], "a": 1}),
    "arrays in a tuple": ((np.ones(2), np.ones(3)), (np.ones(2), np.zeros(3))),
    "arrays in a dictionary": ({"x": np.ones(2)}, {"x": np.zeros(3)}),
    "attributes": (Settings(0.1, ["a"]), Settings(0.2, ["b"])),
    "slots": (Slotted(np.ones(2)), Slotted(np.zeros(3))),
    "namespace": (types.SimpleNamespace(lr=0.1), types.SimpleNamespace(lr=0.2)),
    "dataset": (TensorDataset(torch.ones(4)), TensorDataset(torch.zeros(4))),
}


@pytest.mark.parametrize(("there", "here"), VALUES.values(), ids=VALUES)
def test_a_value_that_differs_becomes_the_notebooks(there: Any, here: Any) -> None:
    notes, call = noted(Call({"x": there})), Call({"x": here})
    assert {row.how for row in compared(notes, call)} == {"notebook's value"}
    assert compared(notes, call) == []  # now it is the same


def test_those_that_share_an_array_or_a_list_have_the_notebooks_too() -> None:
    array, names = np.zeros(4), ["b"]
    view = array[:2]
    compared(noted(Call({"x": np.ones(4), "y": ["a"]})), Call({"x": array, "y": names}))
    assert view.tolist() == [1, 1]
    assert names == ["a"]


def test_the_row_says_both_sides() -> None:
    [row] = compared(noted(Call({"x": ["cat", "dog"]})), Call({"x": ["dog", "cat"]}))
    assert row.what == "x"
    assert row.note == (
        "list of 2: 'dog'; 'cat' on the worker, list of 2: 'cat'; 'dog' in the notebook; the notebook's is used, in "
        "trials with the notebook's hyperparameters and seed"
    )


def _reading(**names: Any) -> Callable[..., Any]:
    """Return a function of a notebook that reads these names."""
    namespace: dict[str, Any] = {"__name__": "__main__", **names}
    exec(f"def train_batch(batch):\n    return batch, {', '.join(names)}", namespace)  # noqa: S102
    return namespace["train_batch"]  # type: ignore[no-any-return]


def test_what_a_function_reads_and_closes_over_becomes_the_notebooks() -> None:
    def weighted(weight: float) -> Callable[[], float]:
        return lambda: weight

    weighted.__module__ = "__main__"
    there, here = weighted(2.0), weighted(3.0)
    there.__module__ = here.__module__ = "__main__"
    compared(noted(Call({"loss": there})), Call({"loss": here}))
    assert here() == 2.0
    train_batch = _reading(rate=0.2, rows=np.zeros(3))
    rows = compared(noted(Call({}, _reading(rate=0.1, rows=np.ones(3)))), Call({}, train_batch))
    assert [row.what for row in rows] == ["rate, read by train_batch", "rows, read by train_batch"]
    _, rate, array = train_batch(1)
    assert (rate, array.tolist()) == (0.1, [1, 1, 1])


def _two(make: Callable[[], Any]) -> Callable[[], tuple[Any, Any]]:
    return lambda: (make(), make())


OWN_VALUES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "number of the process": lambda: (os.getpid(), os.getppid()),
    "moment": lambda: (time.time(), time.time() - 0.5),
    "moment in nanoseconds": lambda: (time.time_ns(), time.time_ns() - 5_000),
    "clock": lambda: (time.perf_counter(), time.perf_counter() - 0.01),
    "date and time": lambda: (datetime.datetime.now(), datetime.datetime.now() - datetime.timedelta(minutes=3)),
    "text of a moment": lambda: tuple(f"runs/{time.strftime('%Y%m%d')}-{clock}" for clock in ("101112", "111213")),
    "uuid": _two(uuid.uuid4),
    "text of a uuid": _two(lambda: f"run-{uuid.uuid4()}"),
    "digits at random": lambda: (f"run_{uuid.uuid4().hex[:10]}a1", f"run_{uuid.uuid4().hex[:10]}b2"),
    "temporary folder": _two(tempfile.mkdtemp),
    "its name": _two(lambda: Path(tempfile.mkdtemp()).name),
    "file in it": _two(lambda: Path(tempfile.mkdtemp()) / "a.csv"),
}


@pytest.mark.parametrize("make", OWN_VALUES.values(), ids=OWN_VALUES)
def test_what_each_process_has_its_own_of_becomes_the_notebooks_without_a_warning(
    make: Callable[[], tuple[Any, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    there, here = make()
    call = Call({"x": [here], "y": {"made": here}}, _reading(stamp=here))
    rows = compared(noted(Call({"x": [there], "y": {"made": there}}, _reading(stamp=there))), call)
    is_folder = str(tmp_path) in str(here) or str(here).startswith("tmp")
    stays = is_folder or isinstance(here, float)  # of which only last digits differ
    assert len(rows) == (0 if stays else 3)
    assert call.value() == ([here] if stays else [there])
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("there", "here"),
    [(1.5, 2.5), (100.0, 200.0), (12, 13), ("v1", "v2"), (2_000_000_000, 2_100_000_000), ("train/a", "test/a")],
)
def test_settings_are_not_taken_for_what_each_process_has_its_own_of(there: Any, here: Any) -> None:
    assert compared(noted(Call({"x": there})), Call({"x": here}))


def test_values_travel_up_to_a_size_and_the_rest_is_an_error() -> None:
    large = np.zeros(VALUES_LIMIT // 8 + 1)
    notes = noted(Call({"small": np.ones(3), "large": large}))
    assert sum(map(len, notes.values.values())) < 10_000
    with pytest.raises(InputDiffersError, match=r"large: .*mean 1 on the worker"):
        compared(notes, Call({"small": np.zeros(3), "large": large + 1}))


def test_secrets_do_not_travel() -> None:
    secret = "sk-live-0123456789abcdefghijk"
    there = Call({"settings": {"keys": ["a", secret]}}, _reading(api_key=secret))
    notes = noted(there)
    assert "sk-live" not in notes.proof.model_dump_json()
    sent = [*notes.values.values(), *map(zlib.decompress, [notes.values[notes.proof.table.sha256]])]  # type: ignore[union-attr]
    assert not any(b"sk-live" in content for content in sent)
    rows = compared(notes, Call({"settings": {"keys": ["a", secret]}}, _reading(api_key="sk-live-other")))
    assert [row.note for row in rows] == ["a text that looks like a secret has another value on the worker"]


def test_models_begin_with_the_notebooks_weights() -> None:
    there, here = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def call(model: torch.nn.Linear) -> Call:
        weights = list(model.state_dict().values())

        def assign(values: list[Any]) -> None:
            for tensor, value in zip(weights, values, strict=True):
                tensor.copy_(torch.as_tensor(value))

        return Call({"the model's weights": Input(weights, "weights", assign=assign)})

    notes = noted(call(there))
    assert compared(notes, call(here), fresh=False) == []  # these come from its checkpoint
    assert not torch.equal(there.weight, here.weight)
    [row] = compared(notes, call(here))
    assert row.what == "the model's weights"
    assert torch.equal(there.weight, here.weight)


def test_other_trials_get_what_init_found_there_and_nothing_else() -> None:
    classes, later = ["cat", "dog"], ["a", "b"]
    early = EarlyContents({"classes": classes, "rows": np.arange(3)})
    call = Call({"rows": np.arange(3), "after": np.arange(4)}, _reading(classes=classes, later=later))
    notes = noted(call, early)
    here = Call({"rows": np.zeros(3, int), "after": np.zeros(4, int)}, _reading(classes=["dog", "cat"], later=["b"]))
    rows = compared(notes, here, exact=False)
    assert [row.what for row in rows] == ["rows", "classes, read by train_batch"]
    assert all(row.note.endswith("the notebook's is used") for row in rows)
    assert here.value("rows").tolist() == [0, 1, 2]
    assert here.value("after").tolist() == [0, 0, 0, 0]


def test_an_object_of_a_library_takes_the_notebooks_settings() -> None:
    there, here = Settings(0.1, ["a"]), Settings(0.1, ["a"])
    there.extra, here.extra = StandardScaler(with_std=False), StandardScaler()  # type: ignore[attr-defined]
    callbacks = [{"the callback": Input(value, "callback")} for value in (there, here)]
    [row] = compared(noted(Call(callbacks[0])), Call(callbacks[1]))
    assert (row.what, row.how) == ("the callback.extra.with_std", "notebook's value")


@pytest.fixture(scope="module")
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


def _trained(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """Return a network that was trained by hand, and its optimizer."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(3):
        optimizer.zero_grad()
        (net(torch.rand(8, 3)) ** 2).mean().backward()
        optimizer.step()
    return net, optimizer


@pytest.mark.usefixtures("torch_is_warm")
@pytest.mark.parametrize("names", [("net", "opt"), ("net", "adam")])
def test_a_network_and_an_optimizer_that_a_function_reads_take_the_notebooks_numbers(names: tuple[str, str]) -> None:
    there, here = (dict(zip(names, _trained(seed), strict=True)) for seed in (0, 1))
    net, optimizer = here.values()
    weight, mean = net[0].weight, net[1].running_mean  # type: ignore[index]
    notes = noted(Call({}, _reading(**there)))
    rows = compared(notes, Call({}, _reading(**here)))
    assert {row.how for row in rows} == {"notebook's value"}
    assert {row.what.partition(",")[0] for row in rows} == {*names}
    wanted = dict(zip(names, _trained(0), strict=True))
    assert torch.equal(weight, wanted["net"][0].weight)  # in place
    assert torch.equal(mean, wanted["net"][1].running_mean)
    assert optimizer.param_groups[0]["params"][0] is weight
    assert compared(notes, Call({}, _reading(**here))) == []


@pytest.mark.usefixtures("torch_is_warm")
def test_another_network_becomes_the_notebooks() -> None:
    notes = noted(Call({}, _reading(net=_trained(0)[0])))
    another_class = _trained(1)[0]
    another_class[2] = torch.nn.ReLU()  # type: ignore[operator]
    for other in (another_class, torch.nn.Linear(3, 3)):
        read = _reading(net=other)
        assert compared(notes, Call({}, read))
        assert repr(read(1)[1]) == repr(_trained(0)[0])
        assert torch.equal(read(1)[1][0].weight, _trained(0)[0][0].weight)  # type: ignore[index]


def test_a_network_over_the_limit_is_an_error_that_says_to_send_it() -> None:
    side = int((VALUES_LIMIT / 4) ** 0.5) + 1
    nets = torch.nn.Linear(side, side), torch.nn.Linear(side, side)
    notes = noted(Call({}, _reading(net=nets[0])))
    with pytest.raises(InputDiffersError, match="net, read by train_batch") as raised:
        compared(notes, Call({}, _reading(net=nets[1])))
    assert "values=['net']" in str(raised.value)


@pytest.mark.usefixtures("torch_is_warm")
def test_a_network_of_before_init_is_the_notebooks_in_every_trial() -> None:
    net, other = _trained(0)[0], _trained(1)[0]
    notes = noted(Call({}, _reading(net=net)), EarlyContents({"net": net}))
    [row] = compared(notes, Call({}, _reading(net=other)), exact=False)
    assert row.note.endswith("the notebook's is used")
    assert torch.equal(other[0].weight, _trained(0)[0][0].weight)  # type: ignore[index]


@pytest.mark.usefixtures("torch_is_warm")
def test_a_network_in_an_object_of_the_users_is_put_right_too() -> None:
    there, here = (Settings(0.1, ["a"]) for _ in range(2))
    there.net, here.net = _trained(0)[0], _trained(1)[0]  # type: ignore[attr-defined]
    [row] = compared(noted(Call({}, _reading(teacher=there))), Call({}, _reading(teacher=here)))
    assert (row.what, row.how) == ("teacher, read by train_batch", "notebook's value")
    assert torch.equal(here.net[0].weight, there.net[0].weight)  # type: ignore[attr-defined]


def test_a_long_dictionary_of_weights_keeps_sharing_them_with_their_network() -> None:
    def layers(seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        return torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(40)))

    there, here = layers(0), layers(1)
    best = here.state_dict()
    compared(noted(Call({}, _reading(best=there.state_dict()))), Call({}, _reading(best=best)))
    assert torch.equal(here[3].weight, there[3].weight)  # type: ignore[index]


def test_what_is_reached_in_two_ways_is_one_row() -> None:
    def made(weight: float) -> Call:
        def loss() -> float:
            return weight

        loss.__module__ = "__main__"
        return Call({"the loss": loss}, loss)

    [row] = compared(noted(made(2.0)), made(3.0))
    assert row.what.endswith("loss.weight")


def test_settings_like_moments_are_not_taken_for_moments() -> None:
    for there, here in (("2021-03-26", "2021-04-01"), ("v1.033-033", "v1.034-034"), (["2019-01-01"], ["2020-01-01"])):
        assert compared(noted(Call({"x": there})), Call({"x": here}))
    days = datetime.timedelta(days=34), datetime.timedelta(days=224)
    assert compared(noted(Call({"x": days[0]})), Call({"x": days[1]}))


class Loaded:
    """A user's own, whose data a method makes."""

    def __init__(self) -> None:
        self.rows: Any = None
        self.reads = 0

    def load(self, rows: Any) -> Loaded:
        self.rows = rows
        return self

    def __getitem__(self, place: int) -> Any:
        self.reads += 1
        self.last = self.rows[place]
        return self.last


def test_what_use_has_changed_becomes_the_notebooks_too() -> None:
    used = Loaded().load(np.arange(4.0))
    assert used[2] == 2.0
    call = Call({"x": Loaded().load(np.zeros(4))})
    rows = compared(noted(Call({"x": used})), call)
    assert {row.what for row in rows} == {"x", "x.rows"}
    assert (call.value().rows.tolist(), call.value().reads) == ([0.0, 1.0, 2.0, 3.0], 1)


def test_what_a_module_keeps_beside_its_state_is_compared() -> None:
    class Net(torch.nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.register_buffer("mask", torch.full((2,), scale), persistent=False)
            self.projection = torch.full((3,), scale)
            self._scale = scale
            self.options = {"gain": scale}

        def forward(self, x: Any) -> Any:
            return x * self._scale

    def call(net: Net) -> Call:
        return Call({"the model": Input(net, "layers")})

    there, here = Net(1.0), Net(2.0)
    rows = compared(noted(call(there)), call(here))
    assert rows
    assert (here.mask.tolist(), here.projection.tolist(), here._scale) == ([1, 1], [1, 1, 1], 1.0)
    assert here.options == {"gain": 1.0}


def test_variables_that_the_body_of_a_loop_reads_are_compared() -> None:
    def call(scale: float) -> Call:
        names: dict[str, Any] = {"__name__": "__main__", "running_loop": running_loop, "scale": scale, "rows": [1, 2]}
        exec("for row in rows:\n    loop = running_loop()\n    total = row * scale\n", names)  # noqa: S102
        return Call({"the loop": Input(names["loop"], "code")})

    here = call(3.0)
    rows = compared(noted(call(2.0)), here)
    assert "scale, read by the loop" in {row.what for row in rows}
    assert here.value("the loop").__globals__["scale"] == 2.0


def test_elements_of_a_tuple_take_other_lengths() -> None:
    call = Call({"x": TensorDataset(torch.zeros(3), torch.zeros(3))})
    compared(noted(Call({"x": TensorDataset(torch.ones(4), torch.ones(4))})), call)
    assert [tensor.tolist() for tensor in call.value().tensors] == [[1, 1, 1, 1], [1, 1, 1, 1]]


def _loader(value: float) -> torch.utils.data.DataLoader[Any]:
    x = torch.zeros(4_000_000)
    x[7] = value
    return torch.utils.data.DataLoader(TensorDataset(x), batch_size=8)


@pytest.mark.parametrize(
    "make",
    [
        _loader,
        lambda value: [1, *[np.zeros(2 << 20)] * int(value)],
        lambda value: ([1, value], np.full(2 << 20, value)),
    ],
    ids=["in a dataset", "a list that has grown", "beside what travels"],
)
def test_what_is_too_large_to_travel_is_refused_and_stays_as_it_is(make: Callable[[float], Any]) -> None:
    there, here = noted(Call({"data": Input(make(1.0), "data")})), Call({"data": Input(make(0.0), "data")})
    with pytest.raises(InputDiffersError, match="in the notebook"):
        compared(there, here)
    assert "missing" not in str(vars(here.value("data").dataset) if make is _loader else here.value("data"))

"""Objects take the state of others that were made beside them, and stay what they are."""

from __future__ import annotations

import collections
import copy
import functools
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from det_native.heap.edges import Missing
from det_native.heap.graft import graft_names


def graft(there: Any, value: Any) -> tuple[Any, list[str]]:
    """Return what stands for one object that was given the state of another, and what could not be set."""
    names = {"value": there}
    sentences = graft_names(names, {"value": value})
    return names["value"], sentences


class Thing:
    """An object of the user's."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


Thing.__module__ = "__main__"


def shape(value: Any) -> Any:
    """Return what tells an object from another: its class, content, and which of its parts are one object."""
    numbers: dict[int, int] = {}
    kept: list[Any] = []

    def read(part: Any) -> Any:
        if part is None or isinstance(part, int | float | str):
            return part
        if id(part) in numbers:
            return "again", numbers[id(part)]
        kept.append(part)
        numbers[id(part)] = len(numbers)
        cls = type(part).__name__
        if isinstance(part, np.ndarray):
            return cls, str(part.dtype), part.tolist(), None if part.base is None else read(part.base)
        if isinstance(part, dict):
            return cls, [(key, read(inner)) for key, inner in sorted(part.items())]
        if isinstance(part, list | tuple | collections.deque):
            return cls, [read(inner) for inner in part]
        if isinstance(part, set | frozenset):
            return cls, sorted(part)
        return cls, read(vars(part))

    return read(value)


def _made(draw: Any, room: list[Any], depth: int) -> Any:
    """Draw a value, of which parts may be those that were made before."""
    kinds = ["number", "again"] if depth == 0 else ["number", "again", "list", "tuple", "dict", "set", "thing", "array"]
    kind = draw(st.sampled_from(kinds))
    if kind == "again" and room:
        return room[draw(st.integers(0, len(room) - 1))]
    if kind in ("number", "again"):
        return draw(st.integers(0, 5))
    if kind == "set":
        made: Any = draw(st.sets(st.integers(0, 5), max_size=3))
    elif kind == "array":
        base = np.arange(draw(st.integers(2, 4))) * draw(st.integers(1, 3))
        room.append(base)
        made = draw(st.sampled_from([base, base[1:]]))
    else:
        inner = [_made(draw, room, depth - 1) for _ in range(draw(st.integers(0, 3)))]
        named = dict(zip("abc", inner, strict=False))
        made = {"list": inner, "tuple": tuple(inner), "dict": named, "thing": None}[kind]
        made = Thing(**named) if kind == "thing" else made
    room.append(made)
    return made


@st.composite
def values(draw: Any) -> Any:
    room: list[Any] = []
    made = [_made(draw, room, 3) for _ in range(3)]
    for holder in room:  # cycles
        if isinstance(holder, list) and draw(st.integers(0, 3)) == 0:
            holder.append(room[draw(st.integers(0, len(room) - 1))])
    return made


def _at_same_places(before: dict[tuple[Any, ...], Any], value: Any) -> int:
    """Return how many objects are still where they were."""
    return sum(found is before.get(way) for way, found in _ways(value).items())


def _ways(value: Any) -> dict[tuple[Any, ...], Any]:
    """Return the lists, dicts and objects that are reached through each other by their way."""
    found: dict[tuple[Any, ...], Any] = {}
    seen: set[int] = set()
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while waiting:
        way, part = waiting.pop(0)
        if id(part) in seen or not isinstance(part, list | dict | Thing):
            continue
        seen.add(id(part))
        found[way] = part
        held = part if isinstance(part, dict) else vars(part) if isinstance(part, Thing) else dict(enumerate(part))
        waiting += [((*way, label), inner) for label, inner in held.items()]
    return found


@settings(max_examples=300, deadline=None)
@given(values(), values())
def test_all_is_as_in_the_other_value(there: Any, value: Any) -> None:
    wanted = shape(value)
    result, sentences = graft(there, value)
    assert shape(result) == wanted
    assert result is there
    assert sentences == []


@settings(max_examples=200, deadline=None)
@given(values(), st.randoms(use_true_random=False))
def test_objects_that_match_stay_the_objects_that_they_are(there: Any, random: Any) -> None:
    value = copy.deepcopy(there)
    for part in _ways(value).values():
        if isinstance(part, list) and part and random.random() < 0.5:
            part.append(7)
    before, wanted = _ways(there), shape(value)
    result, _ = graft(there, value)
    assert shape(result) == wanted
    assert _ways(result).keys() == before.keys()
    assert all(found is before[way] for way, found in _ways(result).items())


def test_new_objects_hold_those_that_are_there() -> None:
    shared, view = [1], np.arange(4)
    there = {"shared": shared, "array": view}
    other = [1, 2]
    array = np.arange(4) * 2
    new = {"shared": other, "array": array, "in tuple": (other, 3), "in thing": Thing(x=other), "view": array[1:]}
    result, sentences = graft(there, {**new, "part": functools.partial(max, other), "bound": other.append})
    assert sentences == []
    assert result["shared"] is shared
    assert shared == [1, 2]
    assert result["in tuple"][0] is result["in thing"].x is result["part"].args[0] is shared
    assert result["bound"].__self__ is shared
    assert result["array"] is view
    assert view.tolist() == [0, 2, 4, 6]
    assert result["view"].base is view


def test_a_closure_of_the_notebook_keeps_its_cells() -> None:
    def counter() -> Any:
        count = [0]

        def add() -> int:
            count[0] += 1
            return count[0]

        add.__module__ = "__main__"
        return add, count

    (add, count), (other, others_count) = counter(), counter()
    assert (other(), other()) == (1, 2)
    result, sentences = graft({"count": count, "add": add}, {"count": others_count, "add": other, "twice": [other]})
    assert sentences == []
    assert result["add"] is add
    assert result["twice"] == [add]
    assert add() == 3
    assert count == [3]
    result, _ = graft({"count": count}, {"count": others_count, "add": other})
    assert result["add"]() == 3
    assert count == [3]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (np.zeros(3), np.ones(4)),
        (np.zeros(3), np.ones(3, "f4")),
        (np.zeros(3), np.ones((3, 1))),
        (np.frombuffer(bytes(24)), np.ones(3)),
        (np.zeros(6)[::2], np.ones(3)),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": ["x", "y"]})),
        (pd.Series([1, 2]), pd.Series([1.5])),
        (ValueError("a"), ValueError("b")),
        (collections.deque([1], 3), collections.deque([2], 5)),
    ],
)
def test_what_cannot_take_a_state_is_replaced(before: Any, now: Any) -> None:
    wanted = copy.deepcopy(now)
    result, sentences = graft({"x": before, "held": [before]}, {"x": now, "held": [now]})
    assert sentences == []
    assert result["held"][0] is result["x"]
    assert type(result["x"]) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert result["x"].dtype == wanted.dtype
        assert result["x"].tolist() == wanted.tolist()
    elif isinstance(wanted, pd.DataFrame | pd.Series):
        assert result["x"].equals(wanted)
    else:
        assert repr(result["x"]) == repr(wanted)


def test_a_named_tuple_of_the_users_keeps_its_class() -> None:
    made: list[Any] = [collections.namedtuple("Settings", "scale") for _ in range(2)]
    for cls in made:
        cls.__module__ = "__main__"
    value, sentences = graft(made[0](0.1), made[1](0.5))
    assert (type(value), value, sentences) == (made[0], (0.5,), [])


def test_a_table_takes_the_state_in_place() -> None:
    there = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5]})
    result, _ = graft(there, pd.DataFrame({"a": [3, 4], "c": ["x", "y"]}, index=["p", "q"]))
    assert result is there
    assert there.to_dict() == {"a": {"p": 3, "q": 4}, "c": {"p": "x", "q": "y"}}


def test_records_and_notes_of_tables_are_put_right() -> None:
    def made(number: int) -> dict[str, Any]:
        records = np.array([(1, 2.0), (number, 3.0)], [("a", "i4"), ("b", "f8")])
        table = pd.DataFrame({"name": [1]})
        table.attrs = {"seen": [number]}
        return {"records": records, "of": records["a"], "named": records.copy().view(np.recarray), "table": table}

    there = made(1)
    before = dict(there)
    there["notes"] = table_notes = there["table"].attrs
    assert graft_names(there, {**(now := made(7)), "notes": now["table"].attrs}) == []
    assert all(there[name] is value for name, value in before.items())
    assert (there["records"].tolist(), there["of"].tolist()) == ([(1, 2.0), (7, 3.0)], [1, 7])
    assert there["named"].a.tolist() == [1, 7]
    assert there["table"].attrs is table_notes
    assert table_notes == {"seen": [7]}


def test_what_stays_in_its_process_and_what_is_missing_keeps_its_value() -> None:
    lock = threading.Lock()
    there = Thing(lock=lock, n=1, inner=[1, 2])
    value = Thing(lock=Missing("a lock"), n=2, inner=[Missing(), 3])
    result, sentences = graft(there, value)
    assert result is there
    assert sentences == []
    assert (there.lock, there.n, there.inner) == (lock, 2, [1, 3])
    result, _ = graft({"t": (lock, 1)}, {"t": (Missing("a lock"), 2)})
    assert result["t"] == (lock, 2)


def test_an_object_that_refuses_is_named() -> None:
    class Refuses(dict[str, Any]):
        def __reduce_ex__(self, protocol: Any) -> Any:
            raise RuntimeError("no")

    class Locked:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("no")

    for cls in (Refuses, Locked):
        cls.__module__ = "__main__"
    there, value = {"x": Refuses(a=1), "y": Locked()}, {"x": Refuses(a=2), "y": Locked()}
    result, _ = graft(there, value)
    assert result["x"]["a"] == 2


def test_several_names_share_what_they_share() -> None:
    there: dict[str, Any] = {"a": [1]}
    a, kept = [1, 2], there["a"]
    values: dict[str, Any] = {"a": a, "b": {"a": a}, "n": 3}
    assert graft_names(there, values) == []
    assert there["a"] is kept
    assert there["b"]["a"] is kept
    assert there["n"] == 3


torch = pytest.importorskip("torch")


@pytest.fixture
def optimizers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what any optimizer of PyTorch makes at first where it goes with the test."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))


def _training() -> dict[str, Any]:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 3))
    model[2].weight = torch.nn.Parameter(model[0].weight.detach().T.clone())
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return {"model": model, "optimizer": optimizer, "schedule": schedule, "tied": model[0].weight}


def _train(names: dict[str, Any], count: int = 2) -> None:
    for _ in range(count):
        names["optimizer"].zero_grad()
        names["model"](torch.ones(4, 3)).square().sum().backward()
        names["optimizer"].step()
        names["schedule"].step()


@pytest.mark.usefixtures("optimizers")
def test_an_optimizer_goes_on_to_train_the_model() -> None:
    there, value, wanted = _training(), _training(), _training()
    model, optimizer = there["model"], there["optimizer"]
    _train(value)
    _train(wanted, 4)
    view = model[0].weight.detach().numpy()
    assert graft_names(there, value) == []
    assert there["model"] is model
    assert there["optimizer"] is optimizer
    assert view.tolist() == model[0].weight.tolist() == value["tied"].tolist()
    assert there["tied"] is model[0].weight is optimizer.param_groups[0]["params"][0]
    _train(there)
    assert [p.tolist() for p in model.parameters()] == [p.tolist() for p in wanted["model"].parameters()]
    assert there["schedule"].get_last_lr() == wanted["schedule"].get_last_lr()


@pytest.mark.usefixtures("optimizers")
def test_a_model_of_another_build_becomes_that_build() -> None:
    there = {"model": torch.nn.Linear(2, 3)}
    there["optimizer"] = torch.optim.SGD(there["model"].parameters())
    weight, value = there["model"].weight, {"model": torch.nn.Linear(4, 5)}
    value["optimizer"] = torch.optim.SGD(value["model"].parameters())
    wanted = value["model"].weight.tolist()
    assert graft_names(there, value) == []
    assert there["model"].weight is weight is there["optimizer"].param_groups[0]["params"][0]
    assert weight.tolist() == wanted
    assert there["model"](torch.ones(1, 4)).shape == (1, 5)


def test_a_tensor_of_another_type_is_replaced() -> None:
    there: dict[str, Any] = {"x": torch.zeros(2)}
    there["held"] = Thing(x=there["x"])
    new = torch.ones(2, dtype=torch.int64)
    assert graft_names(there, {"x": new, "held": Thing(x=new)}) == []
    assert there["x"].tolist() == [1, 1]
    assert there["held"].x is there["x"]


def test_a_module_of_a_file_is_not_touched() -> None:
    assert graft({"m": types}, {"m": types, "n": 1})[0] == {"m": types, "n": 1}


def test_a_loss_with_a_graph_takes_the_value_of_one_without() -> None:
    loss = (torch.ones(3, requires_grad=True) * 2).sum()
    result, sentences = graft({"loss": loss}, {"loss": torch.tensor(5.0)})
    assert sentences == []
    assert (result["loss"].item(), result["loss"].requires_grad) == (5.0, False)

"""Whatever reads objects of the notebook, no method of the user's classes runs: one that counts, writes or sleeps."""

from __future__ import annotations

import unittest.mock
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from both_sides import train

from det_native.capture.carry import CannotSendError, pack
from det_native.capture.value_paths import ValuePaths
from det_native.capture.values_to_send import _holds_data, _is_place
from det_native.capture.watch import Watch
from det_native.experimental.early_contents import EarlyContents
from det_native.heap.call import CallSnapshot
from det_native.heap.compare import Table
from det_native.heap.values import pack_roots
from det_native.heap.words import describe

_METHODS = (
    "len repr str bool eq ne lt hash iter next call contains getitem setitem sizeof format int float index array copy "
    "deepcopy dir fspath getattr"
)
_ATTRIBUTES = (
    "shape dtype dataset nbytes columns iloc state_dict parameters get_weights element_spec detach numpy size items "
    "values keys fileno __class__"
)
# What pickle and cloudpickle ask themselves.
_OF_PICKLE = {"Plain.__class__", "class.__slots__"}

calls: list[str] = []


def _noisy(name: str, base: type = object) -> Any:
    """Return a class that notes each call of a method, and each attribute that is asked for."""

    def method(own: str) -> Callable[..., Any]:
        def run(self: Any, *arguments: Any) -> Any:
            calls.append(f"{name}.{own}")
            if own == "getattr":
                raise AttributeError(arguments[0])
            return {"hash": 1, "len": 3, "eq": self is (*arguments, None)[0]}.get(own)

        return run

    def attribute(own: str) -> property:
        return property(lambda self: calls.append(f"{name}.{own}"))

    body: dict[str, Any] = {f"__{own}__": method(own) for own in _METHODS.split() if base is object or own != "hash"}
    body |= {own: attribute(own) for own in _ATTRIBUTES.split() if own == "__class__" or not hasattr(base, own)}
    if base is not object:
        del body["__class__"]
    return type(name, (base,), {**body, "__module__": "__main__"})


class _Asked(type):
    def __getattr__(cls, name: str) -> int:
        calls.append(f"class.{name}")
        return 7

    def __eq__(cls, other: object) -> bool:
        calls.append("class ==")
        return cls is other

    def __hash__(cls) -> int:
        return 5


class _Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        calls.append(f"tensor.{function}")
        return torch.Tensor.__torch_function__(function, types, args, kwargs or {})  # type: ignore[no-untyped-call]


class _Frame(pd.DataFrame):
    @property
    def _constructor(self) -> Any:
        calls.append("frame._constructor")
        return _Frame

    def __len__(self) -> int:
        calls.append("frame.len")
        return super().__len__()


for _cls in (_Asked, _Tensor, _Frame):
    _cls.__module__ = "__main__"


def _objects() -> dict[str, Any]:
    plain = _noisy("Plain")
    objects = {f"a_{base.__name__}": _noisy(base.__name__, base)() for base in (list, dict, set, tuple, str, int)}
    objects |= {"plain": plain(), "cls": _Asked("Asked", (), {"__module__": "__main__", "v": 1})}
    objects |= {"array": np.zeros(3).view(_noisy("Array", np.ndarray)), "tensor": torch.zeros(3).as_subclass(_Tensor)}
    objects |= {"frame": _Frame({"a": [1.0]}), "mock": unittest.mock.MagicMock()}
    for value in objects.values():
        with suppress(AttributeError, TypeError):  # the class itself
            object.__getattribute__(value, "__dict__").update(held=[1, 2.0, "x"], more=plain())
    return objects


def _code() -> Any:
    return names  # type: ignore[name-defined] # noqa: F821 (a name of the notebook)


def _jobs(objects: dict[str, Any]) -> dict[str, Callable[[], object]]:
    names = {**objects, "list": [*objects.values()], "dict": objects, "names": {"plain": objects["plain"]}}
    table = Table({**names, "code": _code}, names)
    table.add_words()
    here = CallSnapshot(names, keep_small=True)
    here.changes()
    here.undo()
    watch = Watch()

    def look() -> None:
        watch.begin(names, set(), "x = 1")
        watch.end(names, set(), "x = 1")

    def send() -> None:
        for name in names:
            with suppress(CannotSendError):
                pack([name], names)

    return {
        "packing what a call reaches": lambda: pack_roots(table, 1 << 20, folder="/somewhere"),
        "what there was at init()": lambda: EarlyContents(names),
        "a look": look,
        "sending by value": send,
        "looking for data": lambda: [_holds_data(value, set()) or _is_place(value) for value in names.values()],
        "looking for paths": lambda: [*ValuePaths(names, names).texts([])],
    }


def test_no_method_of_the_users_runs_where_objects_are_read() -> None:
    objects = _objects()
    calls.clear()
    jobs = _jobs(objects)
    assert calls == []
    for title, job in jobs.items():
        calls.clear()
        job()
        assert (title, {*calls} - (_OF_PICKLE if title == "sending by value" else set())) == (title, set())
    assert objects["mock"].mock_calls == []


def test_containers_of_the_users_come_home_past_their_methods() -> None:
    def change(names: dict[str, Any]) -> None:
        logged, last = _Logged(), _Last()
        list.append(logged, "first")
        logged.note = ["kept"]
        dict.update(last, {number: str(number) for number in range(5)})
        names["new"] = [logged, last, _Pair([names["own"], 2])]

    both = train(lambda: {"own": []}, change)
    logged, last, pair = both.notebook["new"]
    assert both.sentences == []
    assert (logged, logged.note, [*last]) == (["first"], ["kept"], [0, 1, 2, 3, 4])
    assert type(pair) is _Pair
    assert pair[0] is both.notebook["own"]


class _Logged(list[Any]):
    note: list[str]

    def append(self, value: Any) -> None:
        raise RuntimeError("not by pickle")

    extend = append


class _Last(dict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        raise RuntimeError("not by pickle")


class _Pair(tuple[Any, ...]):
    def __new__(cls, pair: Any) -> _Pair:
        if len(pair) != 2:
            raise ValueError("a pair")
        return super().__new__(cls, pair)

    def __getattr__(self, name: str) -> Any:
        return self.missing  # asks itself without end


def test_a_mock_that_was_called_comes_home_whole() -> None:
    both = train(lambda: {"mock": unittest.mock.MagicMock()}, lambda names: names["mock"].hello(3))
    mock = both.notebook["mock"]
    assert both.sentences == []
    assert (mock.hello.call_count, mock.mock_calls) == (1, [unittest.mock.call.hello(3)])


def test_values_in_words(recwarn: pytest.WarningsRecorder) -> None:
    asked = []

    class Rows(torch.utils.data.Dataset[Any]):
        def __init__(self) -> None:
            self.rows, self.labels = np.ones((4, 2), "float32"), [1] * 4

        def __len__(self) -> int:
            asked.append("len")
            return 4

    assert describe(torch.zeros(2, dtype=torch.complex64)) == "(2,) complex64"
    assert describe(torch.ones(2, dtype=torch.bfloat16)) == "(2,) bfloat16, mean 1"
    assert describe(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})) == "table of 2 rows and 2 columns"
    assert describe({"a": [1], "b": 2.5}) == "dict of 2: list of 1: 1; 2.5"
    loader = torch.utils.data.DataLoader(Rows())
    asked.clear()
    assert describe(loader) == "Rows ((4, 2) float32, mean 1)"
    assert (asked, recwarn.list) == ([], [])


@pytest.mark.parametrize("job", _jobs({"plain": 1}))
def test_memory_that_was_read_can_be_resized(job: str) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    given = {"plain": weight, "row": torch.ones(2, 3)[1], "half": torch.ones(2, dtype=torch.bfloat16)}
    _jobs(given)[job]()
    describe(weight)
    assert [name for name, tensor in given.items() if not tensor.untyped_storage().resizable()] == []

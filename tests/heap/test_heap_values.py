"""Values of names as bytes: what comes back, what they share, and values that make trouble."""

from __future__ import annotations

import collections
import functools
import io
import pickle
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from det_native.errors import BundleCheckError
from det_native.heap.compare import Table
from det_native.heap.edges import Missing
from det_native.heap.values import (
    check_values,
    code_at,
    pack_roots,
    put_values,
    read_values,
    unpack_roots,
    write_values,
)


class Thing:
    """An object of the user's."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


Thing.__module__ = "__main__"
PROGRAM: dict[str, Any] = {"Thing": Thing}


def look(obj: Any) -> Any:
    return code_at(obj.__qualname__) if isinstance(obj, type) and obj.__module__ == "__main__" else None


def written(values: dict[str, Any], *only_state: str) -> bytes:
    stream, missing = write_values(values, io.BytesIO, look, only_state=only_state)
    assert only_state or not missing
    return stream.getvalue()


def there_and_back(**values: Any) -> dict[str, Any]:
    return read_values(written(values), PROGRAM)[1]


def test_what_names_share_stays_shared() -> None:
    shared, array = [1], np.arange(6)
    thing = Thing(shared=shared)
    thing.itself = thing  # type: ignore[attr-defined]
    made = there_and_back(a=shared, b={"a": shared}, c=thing, d=array, e=array[2:], f=functools.partial(max, shared))
    assert made["b"]["a"] is made["c"].shared is made["f"].args[0] is made["a"]
    assert made["c"].itself is made["c"]
    assert made["e"].base is made["d"]


def test_a_small_part_of_large_memory_travels_without_the_rest() -> None:
    torch = pytest.importorskip("torch")
    for large in (np.zeros(1_000_000), torch.zeros(1_000_000)):
        assert len(written({"part": [large[:10]]})) < 10_000
        assert len(written({"part": [large[:10]], "all": large})) > 1_000_000


def test_paths_are_those_of_the_receiver() -> None:
    value = {
        "a": "/data/x",
        "/data/key": Path("/data/y"),
        "set": {"/data/z"},
        "b": "see /data",
        "c": Path("/q"),
    }
    made = read_values(written({"value": value}), PROGRAM, lambda path: path.replace("/data", "/here"))[1]["value"]
    assert made == {
        "a": "/here/x", "/here/key": Path("/here/y"), "set": {"/here/z"}, "b": "see /data", "c": Path("/q")
    }  # fmt: skip


def test_objects_that_are_there_take_the_state_and_what_is_left_out_stays() -> None:
    lock = threading.Lock()
    kept = [1]
    names: dict[str, Any] = {**PROGRAM, "thing": Thing(lock=lock, log=kept, made=(n for n in "ab")), "log": kept}
    generator = names["thing"].made
    log = [1, 2]
    sent = {"thing": Thing(lock=threading.Lock(), log=log, made=(n for n in "ab"), n=3), "log": log}
    put_values(written(sent, "thing"), names, {"thing": True, "log": True})
    assert names["log"] is names["thing"].log is kept
    assert kept == [1, 2]
    assert (names["thing"].made, names["thing"].n) == (generator, 3)


def test_only_what_is_wanted_is_bound() -> None:
    names: dict[str, Any] = {"a": [1]}
    before = names["a"]
    put_values(written({"a": [2], "b": [3]}), names, {"a": False})
    assert names == {"a": [2]}
    assert names["a"] is not before


def test_what_loads_without_the_program_is_checked() -> None:
    check_values(written({"a": Thing(x=1), "b": [np.arange(3)]}))
    with pytest.raises(Exception, match="gone"):
        check_values(written({"a": collections.OrderedDict(x=1)}).replace(b"OrderedDict", b"gone_edDict"))


def test_values_of_an_earlier_version_say_to_submit_again() -> None:
    earlier = pickle.dumps(([(("a",), "rest", b"")], pickle.dumps({0: [1]})), protocol=5)
    with pytest.raises(BundleCheckError, match="stored by an earlier version of det_native: submit the training again"):
        put_values(earlier, {}, {"a": False})


def test_a_structure_of_any_depth_travels() -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    made = there_and_back(deep=deep)["deep"]
    depth = 0
    while made:
        made, depth = made[0], depth + 1
    assert depth == 20_000


class Opened(Thing):
    """Has a file open, and says how it is pickled without it."""

    def __getstate__(self) -> Any:
        return {"path": self.path}

    def __setstate__(self, state: Any) -> None:
        self.path, self.again = state["path"], True


def test_a_class_says_how_its_objects_are_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Opened, "__module__", "__main__")
    with (tmp_path / "x").open("w") as file:
        content = written({"a": Opened(path="x", file=file)})
    assert vars(read_values(content, {"Opened": Opened})[1]["a"]) == {"path": "x", "again": True}


class Reduces(Thing):
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("no")


class Asked(Thing):
    asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise RuntimeError(name)


class Compares(Thing):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = object.__hash__


class Weak(Thing):
    def __init__(self) -> None:
        self.held = Thing()
        self.reference = weakref.ref(self.held)
        self.dead = weakref.ref(Thing())


def _mapped(folder: Path) -> Any:
    (folder / "x.bin").write_bytes(bytes(800))
    return np.memmap(folder / "x.bin", "f8", "r")[10:20]


@pytest.mark.parametrize("cls", [Reduces, Asked, Compares, Weak])
def test_an_object_that_makes_trouble_is_left_out_alone(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cls, "__module__", "__main__")
    made = cls()
    stream, missing = write_values({"good": [1], "bad": [made, 2]}, io.BytesIO, look)
    values = read_values(stream.getvalue(), PROGRAM | {cls.__qualname__: cls})[1]
    assert values["good"] == [1]
    assert values["bad"][1] == 2
    assert bool(missing) == isinstance(values["bad"][0], Missing) == (cls is Reduces)


def test_arrays_of_files_and_tensors_of_graphs_travel_by_their_numbers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.ones(2, requires_grad=True)
    made = there_and_back(mapped=[_mapped(tmp_path)], loss=[(weight * 2).sum()], weight=weight)
    assert made["mapped"][0].tolist() == [0.0] * 10
    assert made["loss"][0].item() == 4
    assert made["weight"].requires_grad


@pytest.mark.parametrize("large", ["a" * 200_000, b"a" * 200_000, [*range(100_000)]])
def test_a_text_or_list_that_is_too_large_is_left_out_alone(large: Any) -> None:
    given, _ = unpack_roots(
        pack_roots(Table({"setting": {"rate": 0.5}, "large": [large]}, {}), 100_000, folder="/here")
    )
    assert given["setting"] == {"rate": 0.5}
    assert type(given["large"][0]) is Missing

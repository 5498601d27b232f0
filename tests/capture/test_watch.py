"""What a look at values tells apart, and what it leaves alone."""

from __future__ import annotations

import array
import contextlib
import copy
import datetime
import enum
import random
import time
import weakref
from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from det_native.capture.watch import Effects, Watch

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def of_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the classes of this file as the notebook's, not as those of a module beside it with all that is in it."""
    monkeypatch.setattr("det_native.heap.kinds.functions._module_of", lambda _: {})


class Compared(NamedTuple):
    """Names that are others than at the last look, and those of which nobody can tell."""

    changed: set[str]
    unclear: set[str]


def compare(watch: Watch, namespace: dict[str, Any], hidden: Collection[str] = ()) -> Compared:
    """Look again."""
    effects = watch.end(namespace, hidden, "\n".join(namespace))  # a cell that has all of them
    return Compared({*effects.changed, *(effects.bound - effects.made)}, {*effects.unclear})


def noted(value: Any, change: Callable[[Any], object]) -> bool:
    """Whether a look at a value after a change tells that it is another; without one it must not."""
    watch, namespace = Watch(), {"value": value}
    assert not compare(watch, namespace).changed
    assert not compare(watch, namespace).changed
    change(value)
    return compare(watch, namespace).changed == {"value"}


class Mode(enum.IntEnum):
    """Settings are often of such a class."""

    FAST = 1
    SLOW = 2


LOOP: list[Any] = [1]
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1, 2], lambda v: v.append(3)),
        ({"a": [{"b": (1, [2])}]}, lambda v: v["a"][0]["b"][1].append(3)),
        ({"a": 1, "b": 2}, lambda v: v.update(b=float("nan"))),
        ({"best": -1}, lambda v: v.update(best=-2)),
        ([0, 1], lambda v: v.__setitem__(0, 2**61 - 1)),
        ({"shuffle": 1}, lambda v: v.update(shuffle=True)),
        ({1, 2}, lambda v: v.add(3)),
        ({-1}, lambda v: v.__ixor__({-1, -2})),
        ({1}, lambda v: v.__ixor__({1}).__ixor__({True})),
        (deque([1], maxlen=3), lambda v: v.append(2)),
        (OrderedDict(a=1), lambda v: v.update(a=2)),
        (defaultdict(list), lambda v: v["seen"]),
        (array.array("d", [1.0]), lambda v: v.append(2.0)),
        (bytearray(b"a"), lambda v: v.extend(b"b")),
        (SimpleNamespace(lr=0.1), lambda v: setattr(v, "lr", 0.2)),
        (LOOP, lambda v: v.insert(0, 0)),
        ([object()], lambda v: v.__setitem__(0, object())),
        (np.zeros(3), lambda v: v.__setitem__(1, 2.0)),
        (np.zeros((40, 1000))[:, ::2], lambda v: v.__imul__(0.0).__iadd__(1.0)),
        (np.array([["a", [1]]], dtype=object), lambda v: v[0, 1].append(2)),
        (np.array(["2020-01-01"], dtype="datetime64[s]"), lambda v: v.__setitem__(0, "2021-01-01")),
        (np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]), lambda v: v["b"].__setitem__(1, 2.0)),
        (np.array(1.0), lambda v: v.__setitem__((), 2.0)),
        (np.zeros(1_000_000), lambda v: v.__iadd__(1)),
        (pd.DataFrame({"a": [1.0, 2.0]}), lambda v: v.insert(0, "b", 3)),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2]}), lambda v: v.__setitem__("a", [3.0, 2.0])),
        (pd.Series([1, 2]), lambda v: v.__setitem__(0, 5)),
        (torch.zeros(3), lambda v: v[1:].add_(1)),
        ({"best": torch.zeros(3)}, lambda v: v["best"].copy_(torch.ones(3))),
        ({"x": np.zeros((2, 3))}, lambda v: v.update(x=v["x"].reshape(3, 2))),
        ({"x": np.zeros(2, "i4")}, lambda v: v.update(x=v["x"].view("f4"))),
        (np.zeros(2, dtype=[("a", "i4")]), lambda v: setattr(v.dtype, "names", ("b",))),
        ({"loss": noted}, lambda v: v.update(loss=test_names_of_the_shell_are_left_out)),
        ({"step": {"loss": (noted,)}}, lambda v: v["step"].update(loss=(test_names_of_the_shell_are_left_out,))),
        ({"type": list[int]}, lambda v: v.update(type=list[str])),
        ({"day": datetime.date(2020, 1, 1)}, lambda v: v.update(day=datetime.date(2021, 1, 1))),
        ({"mode": Mode.FAST}, lambda v: v.update(mode=Mode.SLOW)),
        (OrderedDict(a=1, b=1), lambda v: v.move_to_end("a")),
        (np.random.default_rng(0), lambda v: v.normal()),
        ({"random": np.random.RandomState(0)}, lambda v: v["random"].normal()),
        (torch.Generator(), lambda v: torch.rand(1, generator=v)),
        ([random.Random(1)], lambda v: v[0].random()),
        (UserDict(a=1), lambda v: v.update(a=2)),
        (ChainMap({}, {"a": 1}), lambda v: v.update(a=2)),
        (defaultdict(list, {1: [2]}), lambda v: setattr(v, "default_factory", None)),
        ({"error": ValueError(1)}, lambda v: v.update(error=ValueError(2))),
        ([{"id": n, "text": "a"} for n in range(10_000)], lambda v: v[5_000].update(text="b")),
    ],
)
def test_a_change_is_noted(value: Any, change: Callable[[Any], object]) -> None:
    assert noted(value, change)


class Number(int):
    """An integer of a class of its own."""


class Marked(set[int]):
    """A set with attributes."""


class Node:
    """A part of a tree."""

    def __init__(self, parent: Any = None, child: Any = None) -> None:
        self.parent, self.child = parent, child


def tree() -> Node:
    """Return a root with a child and a grandchild, each of which knows its parent."""
    root = Node()
    root.child = Node(root)
    root.child.child = Node(root.child)
    return root


class Slots:
    """Keeps its state elsewhere than in a dictionary."""

    __slots__ = ("rate",)


@dataclass(order=True)
class Config:
    """Settings."""

    rate: float = 0.1
    sizes: list[int] = field(default_factory=lambda: [4])


class Kept:
    """A descriptor that keeps the values itself."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}

    def __get__(self, owner: Any, _: type) -> Any:
        return self.values.get(id(owner))

    def __set__(self, owner: Any, value: Any) -> None:
        self.values[id(owner)] = value


class Owner(Slots):
    """A class with one."""

    kept = Kept()

    def remember(self, what: int, known: list[int] = []) -> None:  # noqa: B006
        known.append(what)


def enclosing() -> type:
    """Return a class whose instances keep their state in the function that it was made in."""
    rates = {"first": 0.1}

    class Inner:
        def put(self, rate: float) -> None:
            rates["first"] = rate

    return Inner


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ({"number": Number(1)}, lambda v: v.update(number=Number(2))),
        (Marked(), lambda v: setattr(v, "mark", 1)),
        (Slots(), lambda v: setattr(v, "rate", 1)),
        (Owner(), lambda v: setattr(v, "rate", 1)),
        (Owner(), lambda v: setattr(v, "kept", 1)),
        (tree(), lambda v: setattr(v.child.child, "parent", v)),
    ],
)
def test_a_change_of_an_object_of_a_class_of_the_notebook(
    monkeypatch: pytest.MonkeyPatch, value: Any, change: Callable[[Any], object]
) -> None:
    for kind in (Number, Marked, Slots, Kept, Owner, Node):
        monkeypatch.setattr(kind, "__module__", "__main__")
    assert noted(value, change)


def test_what_functions_and_classes_keep_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = enclosing()
    for kind in (hidden, Owner, Slots, Kept):
        monkeypatch.setattr(kind, "__module__", "__main__")
    monkeypatch.setitem(globals(), "__name__", "__main__")
    for function in (enclosing, hidden.put, Owner.remember, Owner.__init_subclass__, noted):
        with contextlib.suppress(AttributeError):
            monkeypatch.setattr(function, "__module__", "__main__")
    changes: list[tuple[Any, Callable[[Any], object]]] = [
        (hidden(), lambda v: v.put(0.2)),
        (hidden, lambda v: v().put(0.3)),
        (Owner(), lambda v: v.remember(1)),
        (Owner, lambda v: setattr(v, "rate_of_all", 1)),
        (Owner, lambda v: v.remember(v, 2)),
        ([Owner], lambda v: v[0].remember(v, 3)),
        (noted, lambda v: setattr(v, "calls", 1)),
        ({"loss": noted}, lambda v: v["loss"].__dict__.update(calls=2)),
    ]
    for value, change in changes:
        assert noted(value, change)
    del noted.calls  # type: ignore[attr-defined]


def test_looking_at_functions_and_classes_tells_that_they_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "__name__", "__main__")
    for one in (Config, Owner, Slots, Kept, noted, Owner.remember, Kept.__init__, Kept.__get__, Kept.__set__):
        monkeypatch.setattr(one, "__module__", "__main__")
    watch, namespace = Watch(), {"kind": Owner, "function": noted, "both": {"a": noted, "b": Owner()}, "c": Config()}
    compare(watch, namespace)
    copy.copy(Slots())
    assert compare(watch, namespace) == (set(), set())


def test_an_equal_value_that_others_keep_too_is_a_change() -> None:
    watch, settings = Watch(), {"rate": 0.1}
    namespace = {"trainer": {"settings": {"rate": 0.1}, "x": np.zeros(2)}}
    compare(watch, namespace)
    assert not compare(watch, namespace).changed
    namespace["trainer"]["settings"] = settings
    assert compare(watch, namespace).changed == {"trainer"}
    assert not compare(watch, namespace).changed


def test_no_look_takes_long() -> None:
    shared: list[Any] = [1]
    for _ in range(40):
        shared = [shared, shared]
    namespace = {
        "shared": shared,
        "arrays": [np.zeros(1 << 22) for _ in range(20)],
        "tokens": [list(range(1_000)) for _ in range(5_000)],
    }
    begin = time.thread_time()
    compare(Watch(), namespace)
    assert time.thread_time() - begin < 2


def test_another_value_of_the_name_is_noted_and_a_new_name_is_not() -> None:
    watch, first, second = Watch(), [1], [1]
    compare(watch, {"a": first, "gone": 1})
    assert compare(watch, {"a": second, "new": 2}) == ({"a"}, set())


def test_a_change_of_what_another_name_holds_is_noted_though_its_own_name_is_bound_anew() -> None:
    source, rows = "rows += [1]\nrows = 0", [2]
    watch, namespace = Watch(), {"rows": rows, "table": [rows, 3], "other": [4]}
    watch.begin(namespace, (), source)
    exec(source, namespace)  # noqa: S102 (a cell)
    effects = watch.end(namespace, ("__builtins__",), source)
    assert (effects.bound, effects.changed, effects.unclear) == ({"rows"}, {"table"}, set())


@pytest.mark.parametrize("value", ["[{}]", "[float({})]", "{{'n': {}}}"])
def test_a_new_value_that_lies_where_the_old_one_did_is_noted(value: str) -> None:
    source = f"for n in range(2, 4):\n    last = {value.format('n')}"
    for _ in range(20):  # until the memory of the old value is taken again
        watch, namespace = Watch(), {"n": 0}
        exec("last = " + value.format(1), namespace)  # noqa: S102 (a cell)
        watch.begin(namespace, ("__builtins__",), source)
        place = id(namespace["last"])
        exec(source, namespace)  # noqa: S102 (a cell)
        effects = watch.end(namespace, ("__builtins__",), source)
        assert "last" in effects.bound | effects.changed
        if id(namespace["last"]) == place:
            return
    pytest.fail("no value came to lie where the old one did")


def test_no_cell_that_follows_is_said_to_have_changed_what_a_look_that_was_interrupted_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    watch, namespace = Watch(), {"value": [1]}
    compare(watch, namespace)
    namespace["value"].append(2)
    with monkeypatch.context() as patch:
        patch.setattr("det_native.heap.look_trees.Tree.find", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compare(watch, namespace)
    assert watch.begin(namespace, (), "value").between == {"value"}
    assert not compare(watch, namespace).changed


def test_names_of_the_shell_are_left_out() -> None:
    watch = Watch()
    for run in (1, 2):
        names = ("_", "__", "_i", "_i7", "_7", "_dh", "In", "Out", "hidden")
        assert compare(watch, dict.fromkeys(names, run), {"hidden"}) == (set(), set())
    assert not compare(watch, {"_config": [1]}).changed
    assert compare(watch, {"_config": [2]}).changed == {"_config"}


class Touchy:
    """Every way to look at it that runs code of its own is an error."""

    def __init__(self) -> None:
        self.parts = [1]

    def _touched(self, *_: Any) -> Any:
        raise AssertionError

    __eq__ = __iter__ = __len__ = __hash__ = __repr__ = __getattr__ = __bool__ = _touched  # type: ignore[assignment]
    __class__ = property(_touched)  # type: ignore[assignment]


class TouchyDict(dict[str, int]):
    """A dictionary whose own methods must not be called."""

    def _touched(self, *_: Any) -> Any:
        raise AssertionError

    __iter__ = __len__ = __getitem__ = items = keys = values = _touched


class TouchyList(list[int]):
    """A list whose own methods must not be called."""

    def _touched(self, *_: Any) -> Any:
        raise AssertionError

    __iter__ = __len__ = __getitem__ = _touched


class TouchySet(set[int]):
    """A set whose own methods must not be called."""

    def _touched(self, *_: Any) -> Any:
        raise AssertionError

    __iter__ = __len__ = _touched


def test_no_code_of_the_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Touchy, "__module__", "__main__")
    assert noted(Touchy(), lambda value: value.parts.append(2))
    assert noted({"kept": [Touchy()]}, lambda value: value["kept"][0].parts.append(2))
    assert noted(TouchyList([1]), lambda value: list.append(value, 2))
    assert noted(TouchySet([1]), lambda value: set.add(value, 2))
    assert noted(TouchyDict(a=1), lambda value: dict.__setitem__(value, "a", 2))


@pytest.mark.parametrize(
    "value",
    [torch.nn.Linear(1, 1), len, np.random.default_rng(0)],
)
def test_a_look_changes_nothing(value: Any) -> None:
    assert not noted(value, lambda _: None)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ({"a": [1, (2.0, "b")], "c": None}, True),
        (SimpleNamespace(lr=[0.1]), True),
        (np.zeros(10), True),
        ([np.zeros(10)], True),
        ([object()], True),
        ({"loss": print}, True),
        (np.zeros(1_000_000), True),
        (np.ma.array([1, 2], mask=[0, 1]), True),
        ([np.random.default_rng(0)], True),
        (torch.Size([1, 2]), True),
        (torch.zeros(3), True),
        (iter([1]), True),
        (zip([1], [2], strict=True), True),
        ([[n] for n in range(5_000)], True),
        ([[object()] for n in range(60_000)], True),
        ([[] for n in range(600_000)], False),
        (pd.DataFrame({"a": [1]}), True),
    ],
)
def test_it_is_known_whether_all_was_seen(value: Any, exact: bool) -> None:
    watch = Watch()
    compare(watch, {"value": value})
    assert compare(watch, {"value": value}) == (set(), set() if exact else {"value"})


def test_a_mapped_file_is_not_read(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "data", dtype="f8", mode="w+", shape=(1 << 14,))
    namespace = {"mapped": mapped, "view": mapped[1:], "plain": np.asarray(mapped), "kept": [mapped[:9]]}
    watch = Watch()
    compare(watch, namespace)
    (tmp_path / "data").write_bytes(b"")
    assert compare(watch, namespace) == (set(), {*namespace})
    namespace.clear()


def effects_of(value: Any, source: str) -> Effects:
    """Return what is seen of a cell."""
    namespace: dict[str, Any] = {"value": value, "np": np}
    watch = Watch()
    watch.begin(namespace, (), source)
    exec(source, namespace)  # noqa: S102 (the test's own code)
    return watch.end(namespace, (), source)


@pytest.mark.parametrize("place", [1_000_003, 1_999_999])
def test_one_number_of_a_large_array_is_seen_around_the_cell_that_uses_it(place: int) -> None:
    effects = effects_of(np.zeros(2_000_000), f"np.put(value, [{place}], 1)")
    assert effects.changed == {"value"}
    assert not effects_of(np.zeros(2_000_000), "value.sum()").changed


def test_of_a_larger_one_samples_are_compared_and_that_is_told() -> None:
    effects = effects_of(np.zeros(100_000_000), "value[1_000_003] = 1")
    assert (effects.changed, effects.sampled) == (set(), {"value"})


def test_a_large_array_that_several_names_hold_is_read_once() -> None:
    numbers = np.zeros(2_000_000)  # 16 MB: there is room for one such around a quick cell
    namespace: dict[str, Any] = {"numbers": numbers, "first": {"rows": numbers}, "second": [numbers]}
    watch = Watch()
    watch.begin(namespace, (), "")
    source = "first, second, numbers"
    effects = watch.end(namespace, (), source)
    assert (effects.changed, effects.unclear, effects.sampled) == (set(), set(), set())
    watch.begin(namespace, (), source)
    numbers[1_000_003] = 1
    effects = watch.end(namespace, (), source)
    assert (effects.changed, effects.unclear, effects.sampled) == ({"first", "second", "numbers"}, set(), set())


@pytest.mark.parametrize("rest", [[], [[number] for number in range(60_000)]])
def test_a_change_by_no_cell_is_seen_before_the_cell_that_reaches_it(rest: list[Any]) -> None:
    settings = {"rate": 0.1}
    namespace: dict[str, Any] = {"widget": SimpleNamespace(value=settings, rest=rest), "other": [1]}
    watch = Watch()
    watch.begin(namespace, (), "")
    settings["rate"] = 0.7
    namespace["other"].append(2)
    assert watch.begin(namespace, (), "widget.value").between == {"widget"}
    effects = watch.end(namespace, (), "widget.value")
    assert effects.changed == set()
    assert watch.begin(namespace, (), "other").between == {"other"}


def test_memory_that_a_cell_changed_under_another_name_is_not_changed_by_no_cell_before_the_next() -> None:
    array = np.zeros((64, 3), "float32")
    namespace = {"array": array, "view": array[:10], "tensor": torch.from_numpy(array)}
    watch = Watch()
    watch.begin(namespace, (), "")
    watch.end(namespace, (), "array, view, tensor")
    watch.begin(namespace, (), "array[0] = 7")
    array[0] = 7
    assert watch.end(namespace, (), "array[0] = 7").changed == {"array", "view", "tensor"}
    assert not watch.begin(namespace, (), "view + tensor").between


def test_what_holds_an_object_that_a_cell_changed_under_another_name_has_changed_too() -> None:
    row = [1]
    namespace: dict[str, Any] = {"row": row, "rows": {"first": [row]}, "other": [1]}
    watch = Watch()
    watch.begin(namespace, (), "")
    row.append(2)
    effects = watch.end(namespace, (), "row.append(2)")
    assert (effects.changed, effects.unclear) == ({"row", "rows"}, set())


@pytest.mark.parametrize("rest", ["rows = None", "del rows"])
def test_what_shared_an_object_with_a_value_that_a_cell_changed_and_replaced_has_changed_too(rest: str) -> None:
    row = [1]
    namespace: dict[str, Any] = {"row": row, "rows": [row], "other": [1]}
    watch = Watch()
    source = f"rows[0].append(2)\n{rest}"
    watch.begin(namespace, (), source)
    exec(source, namespace)  # noqa: S102 (the test's own program)
    effects = watch.end(namespace, (), source)
    assert (effects.changed, effects.unclear) == ({"row"}, set())


def test_a_value_that_lies_where_the_old_one_was_is_another_one() -> None:
    source = "for _ in range(2):\n    value = Config(number)"
    namespace: dict[str, Any] = {"Config": Config, "value": Config(1), "number": 1}
    watch = Watch()
    for number in range(2, 20):
        namespace["number"] = number
        watch.begin(namespace, (), source)
        exec(source, namespace)  # noqa: S102 (the test's own program)
        effects = watch.end(namespace, (), source)
        assert "value" in effects.bound | effects.changed


def test_a_look_keeps_nothing_alive() -> None:
    value = Config()
    gone = weakref.ref(value)
    watch = Watch()
    compare(watch, {"value": [value]})
    del value
    assert gone() is None


def test_small_values_are_looked_at_however_many_objects_others_have() -> None:
    namespace: dict[str, Any] = {f"large{n}": [[k] for k in range(5_000)] for n in range(6)}
    namespace |= {"copy": copy, "number": 3, "small": [1]}
    watch = Watch()
    source = " + ".join(namespace)
    watch.begin(namespace, (), source)
    effects = watch.end(namespace, (), source)
    assert not effects.unclear & {"copy", "number", "small"}

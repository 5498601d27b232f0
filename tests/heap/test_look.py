"""A look finds whatever has changed in what values lead to, and nothing else."""

from __future__ import annotations

import gc
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from det_native.heap.look import Look

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")


class Node:
    """An object of the user's, with attributes, a slot of a base and a set."""

    def __init__(self) -> None:
        self.number, self.items, self.table = 0.5, [], {}


class Slotted:
    """An object without a dictionary of attributes."""

    __slots__ = ("first", "second")


class Names:
    """The names of a notebook, and a look at all that they lead to."""

    def __init__(self, **values: Any) -> None:
        self.values, self.look = values, Look()
        self.look.enter(self.by_identity())

    def by_identity(self) -> dict[int, Any]:
        """Return the values by identity."""
        return {id(value): value for value in self.values.values()}

    def changed(self) -> set[str]:
        """Look again; return the names whose values have changed inside."""
        roots = [*map(id, self.values.values())]
        found = self.look.find(roots, self.by_identity())
        holders = self.look.holders_of(found.changed)
        self.look.renew(self.by_identity())
        return {name for name, value in self.values.items() if id(value) in holders}


@pytest.fixture(autouse=True)
def of_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the classes of this file as the notebook's, not as those of a module with all that is in it."""
    monkeypatch.setattr("det_native.heap.kinds.functions._module_of", lambda _: {})


def containers() -> list[Any]:
    """Return one of each container that values are put into."""
    return [[], {}, OrderedDict(), Node(), Slotted(), np.empty(2, dtype=object)]


def put(container: Any, key: int, value: Any) -> None:
    """Have a container hold a value."""
    if isinstance(container, Node):
        setattr(container, f"own{key % 3}", value)
    elif isinstance(container, Slotted):
        setattr(container, ("first", "second")[key % 2], value)
    elif isinstance(container, dict):
        container[key % 3] = value
    elif isinstance(container, np.ndarray):
        container[key % 2] = value
    elif len(container) > key % 4:
        container[key % 4] = value
    else:
        container.append(value)


def leads_to(value: Any, wanted: Any) -> bool:
    """Whether one value is reached from another, by Python's own pointers."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        obj = waiting.pop()
        if obj is wanted:
            return True
        if id(obj) in seen or isinstance(obj, type):
            continue
        seen.add(id(obj))
        waiting += obj.tolist() if isinstance(obj, np.ndarray) else gc.get_referents(obj)
    return False


VALUES = st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none(), st.booleans())
CHANGES = st.lists(
    st.tuples(st.integers(0, 23), st.integers(0, 3), st.one_of(VALUES, st.integers(0, 23).map(lambda n: (n,))))
)


@given(
    links=st.lists(st.tuples(st.integers(0, 23), st.integers(0, 23), st.integers(0, 3)), max_size=40), changes=CHANGES
)
@settings(deadline=None)
def test_each_change_of_a_graph_is_found_and_nothing_else(links: Any, changes: Any) -> None:
    objects = [obj for _ in range(4) for obj in containers()]
    for holder, held, key in links:
        put(objects[holder], key, objects[held])
    names = Names(**{f"n{place}": obj for place, obj in enumerate(objects) if place % 5 == 0})
    assert names.changed() == set()
    for number, key, value in changes:
        container = objects[number]
        new = objects[value[0]] if isinstance(value, tuple) else value
        before = contents(container)
        put(container, key, new)
        is_same = same(before, contents(container))
        expected = {name for name, value in names.values.items() if not is_same and leads_to(value, container)}
        assert names.changed() == expected
    assert names.changed() == set()


def contents(container: Any) -> list[Any]:
    """Return what a container holds, with its keys."""
    if isinstance(container, Node):
        return [*vars(container), *vars(container).values()]
    if isinstance(container, Slotted):
        return [getattr(container, name, "unset") for name in Slotted.__slots__]
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def same(before: list[Any], now: list[Any]) -> bool:
    """Whether values are equal, and objects the same."""
    plain = (int, float, str, type(None))
    return len(before) == len(now) and all(
        (type(a) is type(b) and (a == b or (a != a and b != b))) if isinstance(a, plain) else a is b
        for a, b in zip(before, now, strict=True)
    )


class Odd:
    """Whatever is asked of it, it does something."""

    done: list[str] = []

    def __init__(self) -> None:
        object.__setattr__(self, "inner", [1])

    def _do(self, *given: Any, **named: Any) -> Any:
        Odd.done.append("something")
        raise RuntimeError

    __eq__ = __len__ = __iter__ = __reduce_ex__ = __reduce__ = __getattr__ = __getattribute__ = _do  # type: ignore[assignment]
    __repr__ = __bool__ = __getitem__ = __setattr__ = __sizeof__ = __dir__ = _do  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def test_nothing_of_the_users_is_called_by_a_look() -> None:
    odd = Odd()
    names = Names(odd=odd, table={"kept": [odd]}, other=[1])
    assert names.changed() == set()
    object.__getattribute__(odd, "inner").append(2)
    assert names.changed() == {"odd", "table"}
    assert Odd.done == []


def test_a_module_that_a_cell_made_and_notes_of_a_table_are_looked_at() -> None:
    tools, table = types.ModuleType("tools_of_a_cell"), pd.DataFrame({"a": [1]})
    records = np.zeros(2, [("a", "i4"), ("o", "O")])
    tools.calls = {"n": 0}  # type: ignore[attr-defined]
    table.attrs["n"] = 1
    names = Names(tools=tools, table=table, records=records)
    assert names.changed() == set()
    tools.calls["n"] += 1
    assert names.changed() == {"tools"}
    table.attrs["n"] += 1
    assert names.changed() == {"table"}
    records["a"][1] = 3
    assert names.changed() == {"records"}
    records["o"][0] = "x"
    assert names.changed() == {"records"}
    assert names.changed() == set()


@pytest.mark.parametrize("make", [Node, lambda: np.zeros(3), lambda: torch.zeros(3), lambda: [Node()]])
def test_a_look_keeps_nothing_alive(make: Callable[[], Any]) -> None:
    value = make()
    gone = weakref.ref(value[0] if isinstance(value, list) else value)
    names = Names(value=value)
    names.changed()
    names.values.clear()
    del value
    gc.collect()
    assert gone() is None


def test_an_array_can_be_resized_that_a_look_knows() -> None:
    names = Names(numbers=np.zeros(3))
    names.values["numbers"].resize(5)
    assert names.changed() == {"numbers"}


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: np.arange(9.0), lambda numbers: numbers.__setitem__(0, 7.0)),
        (lambda: torch.arange(9.0), lambda numbers: numbers.__setitem__(0, 7.0)),
    ],
)
def test_whoever_looks_at_the_same_memory_has_changed(make: Any, change: Any) -> None:
    numbers = make()
    names = Names(view=numbers[2:], whole=numbers, kept={"array": numbers.reshape(3, 3)}, other=make())
    change(names.values["whole"])
    assert names.changed() == {"view", "whole", "kept"}


def test_a_value_that_takes_the_place_of_another_in_memory_is_seen() -> None:
    names = Names(rows=[[float(n)] for n in range(50)])
    for number in range(50):
        rows = names.values["rows"]
        rows[number] = None
        rows[number] = [number + 0.5]
        assert names.changed() == {"rows"}
        rows[number][0] = number + 0.75
        assert names.changed() == {"rows"}


def test_what_lies_beyond_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.heap.look_trees.MOST_OBJECTS", 100)
    names = Names(rows=[[] for _ in range(200)], few=[[] for _ in range(50)])
    rows, few = map(id, names.values.values())
    assert names.look.find([rows, few], names.by_identity()).unseen == {rows}


def test_a_cycle_and_a_long_chain_are_walked_through() -> None:
    chain: list[Any] = []
    for _ in range(20_000):
        chain = [chain]
    ring: dict[str, Any] = {}
    ring["self"] = {"back": ring}
    names = Names(chain=chain, ring=ring)
    assert names.changed() == set()
    ring["self"]["new"] = 1
    assert names.changed() == {"ring"}
